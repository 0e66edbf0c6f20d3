"""Doubts of runs that rest: providers are asked what happened, and people where no attempt will ask them.

Nothing is ever called.
"""

from __future__ import annotations

import logging

from celegraph.agent.conclude import kept_result
from celegraph.agent.declaration import Declaration, Found, Happened, NotHappened, Unknown, declared
from celegraph.agent.dispatch import PolicyOf
from celegraph.agent.doubt import asks_for_ended
from celegraph.agent.identify import call_timeout
from celegraph.agent.lookups import look_up_async
from celegraph.agent.questions import doubt_question
from celegraph.config import Config
from celegraph.errors import EffectMisuse
from celegraph.ledger import doubts, outbox
from celegraph.ledger.effects import Effect
from celegraph.ledger.pen import Pen

logger = logging.getLogger("celegraph")


async def reconcile_once(pen: Pen, config: Config, policy_of: PolicyOf, *, limit: int = 20) -> list[str]:
    """Ask the providers; returns the runs for which something is known now, to be woken.

    That nothing happened is recorded of ended runs only: another run finds it itself, because then it
    calls.  `policy_of`: an agent's policy, for the questions about what its ended runs have left.
    """
    known = declared()
    woken = []
    for row in await doubts.resting(pen, [t for t, d in known.items() if d.lookup is not None], limit):
        match await _found(known[row.tool], row, config):
            case Happened(result, ref):
                stored, _ = kept_result(result, config.max_value_bytes)
                if await doubts.happened(pen, row, result=stored, ref=ref):
                    woken.append(row.run_id)
            case NotHappened() if row.run_ended:
                await doubts.did_not_happen(pen, row)
    for row in await doubts.unasked(pen, limit):
        if asks_for_ended(known.get(row.tool), row):
            await outbox.ask(pen, row.run_id, doubt_question(row, policy_of(row.agent), row.agent))
    return woken


async def _found(decl: Declaration, row: Effect, config: Config) -> Found:
    try:
        return await look_up_async(decl, row, call_timeout(config, decl))
    except EffectMisuse as error:
        # One look-up that answers nonsense must not keep the others from being asked.
        logger.error("look-up failed", extra={"key": row.idempotency_key, "error": str(error)})
        return Unknown(str(error))
