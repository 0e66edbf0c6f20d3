"""Look-ups for effects in doubt whose runs rest: what is found is recorded, nothing is ever called."""

from __future__ import annotations

from celegraph.agent.effect import Happened, declared
from celegraph.agent.lookups import look_up_async
from celegraph.ledger import effects
from celegraph.ledger.canonical import encode_result
from celegraph.ledger.pen import Pen


async def reconcile_once(pen: Pen, *, limit: int = 20) -> list[str]:
    """Ask the providers; returns the runs for which something is known now, to be woken.

    Only "it happened" is recorded here.  That it did not is the run's own to find, because then it calls.
    """
    known = {tool: d for tool, d in declared().items() if d.lookup is not None}
    woken = []
    for row in await effects.resting_doubts(pen, list(known), limit):
        found = await look_up_async(known[row.tool], row)
        if isinstance(found, Happened) and await effects.resolve_happened(
            pen, row, result=encode_result(found.result), ref=found.ref
        ):
            woken.append(row.run_id)
    return woken
