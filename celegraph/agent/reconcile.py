"""Look-ups for effects in doubt whose runs rest: what is found is recorded, nothing is ever called."""

from __future__ import annotations

import logging

from celegraph.agent.conclude import kept_result
from celegraph.agent.effect import Happened, declared
from celegraph.agent.identify import call_timeout
from celegraph.agent.lookups import look_up_async
from celegraph.config import Config
from celegraph.errors import EffectMisuse
from celegraph.ledger import effects
from celegraph.ledger.pen import Pen

logger = logging.getLogger("celegraph")


async def reconcile_once(pen: Pen, config: Config, *, limit: int = 20) -> list[str]:
    """Ask the providers; returns the runs for which something is known now, to be woken.

    Only "it happened" is recorded here.  That it did not is the run's own to find, because then it calls.
    """
    known = {tool: d for tool, d in declared().items() if d.lookup is not None}
    woken = []
    for row in await effects.resting_doubts(pen, list(known), limit):
        decl = known[row.tool]
        try:
            found = await look_up_async(decl, row, call_timeout(config, decl))
        except EffectMisuse as error:
            # One look-up that answers nonsense must not keep the others from being asked.
            logger.error("look-up failed", extra={"key": row.idempotency_key, "error": str(error)})
            continue
        if isinstance(found, Happened):
            stored, _ = kept_result(found.result, config.max_value_bytes)
            if await effects.resolve_happened(pen, row, result=stored, ref=found.ref):
                woken.append(row.run_id)
    return woken
