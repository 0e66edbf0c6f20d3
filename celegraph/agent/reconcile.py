"""Doubts of runs that rest: providers are asked what happened, and people where no attempt will ask them.

Nothing is ever called.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from celegraph.agent.conclude import kept_result
from celegraph.agent.declaration import Declaration, Found, Happened, NotHappened, Unknown, declared
from celegraph.agent.doubt import LOOK_UP_FOR
from celegraph.agent.identify import call_timeout
from celegraph.agent.lookups import look_up_async
from celegraph.agent.policy import PolicyOf
from celegraph.agent.questions import doubt_question
from celegraph.config import Config
from celegraph.errors import EffectMisuse
from celegraph.ledger import doubts
from celegraph.ledger.effect_row import Effect
from celegraph.ledger.pen import Pen

logger = logging.getLogger("celegraph")


@dataclass
class ReconcileReport:
    """What one tick found out, and asked.  `woken`: runs for which something is known now."""

    happened: int = 0
    did_not_happen: int = 0
    asked: int = 0
    woken: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """For logs and the tick."""
        return {"happened": self.happened, "did_not_happen": self.did_not_happen, "asked": self.asked}


async def reconcile_once(
    pen: Pen, config: Config, policy_of: PolicyOf, *, limit: int = 20
) -> ReconcileReport:
    """Ask the providers about runs that rest, and people about what ended runs have left.

    That nothing happened is recorded of ended runs only: another run finds it itself, because then it
    calls.  `policy_of`: an agent's policy, for the questions.
    """
    known = declared()
    looked_up = [tool for tool, decl in known.items() if decl.lookup is not None]
    report = ReconcileReport()
    # Side by side: one provider that hangs keeps the others' answers from nobody, and the slot no longer than
    # one look-up may take.
    async with asyncio.TaskGroup() as asking:
        for row in await doubts.resting(pen, looked_up, limit):
            asking.create_task(_look_up(pen, config, known[row.tool], row, report))
    unaided = [tool for tool in known if tool not in looked_up]
    left = await doubts.unasked(
        pen, unaided=unaided, looked_up=looked_up, look_up_for=LOOK_UP_FOR, limit=limit
    )
    for row in left:
        await doubts.ask(pen, row.run_id, doubt_question(row, policy_of(row.agent), row.agent))
        report.asked += 1
    return report


async def _look_up(pen: Pen, config: Config, decl: Declaration, row: Effect, report: ReconcileReport) -> None:
    match await _found(decl, row, config):
        case Happened(result, ref):
            stored, _ = kept_result(result, config.max_value_bytes)
            if await doubts.happened(pen, row, result=stored, ref=ref):
                report.happened += 1
                report.woken.append(row.run_id)
        case NotHappened() if row.run_ended:
            report.did_not_happen += await doubts.did_not_happen(pen, row)


async def _found(decl: Declaration, row: Effect, config: Config) -> Found:
    try:
        return await look_up_async(decl, row, call_timeout(config, decl))
    except EffectMisuse as error:
        # One look-up that answers nonsense must not keep the others from being asked.
        logger.error("look-up failed", extra={"key": row.idempotency_key, "error": str(error)})
        return Unknown(str(error))
