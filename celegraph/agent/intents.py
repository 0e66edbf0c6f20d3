"""`effect.enqueue(...)`: writes an intent; its node's own writes release it."""

from __future__ import annotations

from typing import Any

from celegraph.agent.caller import Caller, arrive
from celegraph.agent.declaration import Declaration
from celegraph.agent.identify import identify
from celegraph.errors import EffectMisuse
from celegraph.ledger import outbox


def enqueue_sync(decl: Declaration, args: dict[str, Any]) -> str:
    """For a `def` effect in a sync node; returns the effect's key."""
    caller = _arrive(decl)
    if caller.attempt.on_loop_thread():
        raise EffectMisuse(f"effect {decl.tool!r} is a plain function; enqueue it from a plain 'def' node")
    return caller.attempt.on_loop(_enqueue(caller, decl, args))


async def enqueue_async(decl: Declaration, args: dict[str, Any]) -> str:
    """For an `async def` effect in an async node; returns the effect's key."""
    caller = _arrive(decl)
    if not caller.attempt.on_loop_thread():
        raise EffectMisuse(f"effect {decl.tool!r} is async; await its enqueue in an 'async def' node")
    return await _enqueue(caller, decl, args)


def _arrive(decl: Declaration) -> Caller:
    if decl.requires_approval:
        raise EffectMisuse(
            f"effect {decl.tool!r} requires an approval and cannot be enqueued: an approval pays for a call"
            " made in the run; call it directly"
        )
    return arrive(f"effect {decl.tool!r}", None)


async def _enqueue(caller: Caller, decl: Declaration, args: dict[str, Any]) -> str:
    attempt = caller.attempt
    request = await identify(caller, decl, args)
    name = attempt.execution(caller.place.execution).name
    row = await outbox.enqueue(attempt.pen, request.reservation, task_id=caller.place.task_id, execution=name)
    if row is not None:
        attempt.effects.put(row)
    return request.reservation.key
