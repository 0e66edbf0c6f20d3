"""Claim, call, record: the life of one effect call, in two colours.

A call is made only by whoever holds the claim, and the claim is committed before the call.  Sync
effects run in the node's thread and hop to the attempt's loop for every ledger step; async effects
stay on the loop.  The steps are the same coroutines.
"""

from __future__ import annotations

import asyncio
from typing import Any

from celegraph.agent.apart import apart
from celegraph.agent.attempt import boot_time
from celegraph.agent.caller import Caller, arrive
from celegraph.agent.claims import Lookup, after_lookup, claim_again, meet, prepare
from celegraph.agent.conclude import Granted, conclude, conclude_error, keep
from celegraph.agent.declaration import Declaration, EffectCall
from celegraph.agent.doubt import Replay
from celegraph.agent.flight import Flight
from celegraph.agent.identify import call_timeout
from celegraph.agent.lookups import look_up, look_up_async
from celegraph.errors import AttemptOver, EffectMisuse


def perform_sync(decl: Declaration, args: dict[str, Any], slot: str | None = None) -> Any:
    """A `def` effect, called in a sync node (or any thread that carries the node's context)."""
    caller = arrive(f"effect {decl.tool!r}", slot)
    attempt = caller.attempt
    if attempt.on_loop_thread():
        raise EffectMisuse(
            f"effect {decl.tool!r} is a plain function and was called on the event loop; declare it with"
            " 'async def' and await it, or call it from a plain 'def' node"
        )
    flight = Flight(attempt.loop)
    try:
        result = _perform_sync(caller, decl, args, flight)
    except BaseException as error:
        flight.fail(error)
        raise
    flight.land(result)
    return result


def _perform_sync(caller: Caller, decl: Declaration, args: dict[str, Any], flight: Flight) -> Any:
    attempt = caller.attempt
    prepared = attempt.on_loop(prepare(caller, decl, args, flight.outcome))
    while not isinstance(prepared, Replay):
        if isinstance(prepared, Lookup):
            found = look_up(decl, prepared.row)
            prepared = attempt.on_loop(after_lookup(prepared, found))
            continue
        call = prepared.call()
        if boot_time() > prepared.until:
            prepared = attempt.on_loop(claim_again(prepared))
            continue
        # Until it is recorded: the end of the attempt waits for calls, not for whatever else a thread does.
        attempt.calling.add(call.key)
        try:
            value = decl.function(call, **prepared.request.args)
        except BaseException as error:
            row = attempt.on_loop(conclude_error(prepared, error))
            if row is None:
                raise
        else:
            return _concluded(prepared, call, value)
        finally:
            attempt.calling.discard(call.key)
        prepared = attempt.on_loop(meet(prepared.request, row))
    return prepared.result


def _concluded(granted: Granted, call: EffectCall, value: Any) -> Any:
    try:
        return granted.request.attempt.on_loop(conclude(granted, call, value))
    except AttemptOver:
        # The loop is gone, torn away while the call was out; what it did is still a fact.
        keep(granted, call, value)
        raise


async def perform_async(decl: Declaration, args: dict[str, Any], slot: str | None = None) -> Any:
    """An `async def` effect, awaited in an async node.

    The work goes on in a task of its own when the caller is cancelled: LangGraph cancels a node whose
    sibling failed, and a call cut in the middle would be a doubt that nobody needs.
    """
    caller = arrive(f"effect {decl.tool!r}", slot)
    attempt = caller.attempt
    if not attempt.on_loop_thread():
        raise EffectMisuse(f"effect {decl.tool!r} is async; await it in an 'async def' node")
    work = asyncio.ensure_future(_perform(caller, decl, args))
    attempt.working.add(work)
    work.add_done_callback(attempt.worked)
    return await asyncio.shield(work)


async def _perform(caller: Caller, decl: Declaration, args: dict[str, Any]) -> Any:
    attempt, work = caller.attempt, asyncio.current_task()
    assert work is not None
    # Nobody cancels this task before the attempt is over: the author's function runs apart from it.
    with attempt.pen.shelter():
        prepared = await prepare(caller, decl, args, work)
        while not isinstance(prepared, Replay):
            if isinstance(prepared, Lookup):
                found = await look_up_async(decl, prepared.row, call_timeout(attempt.config, decl))
                prepared = await after_lookup(prepared, found)
                continue
            call = prepared.call()
            if boot_time() > prepared.until:
                prepared = await claim_again(prepared)
                continue
            try:
                value = await _called(prepared, call)
            except BaseException as error:
                row = await conclude_error(prepared, error)
                if row is None:
                    raise
                prepared = await meet(prepared.request, row)
                continue
            return await conclude(prepared, call, value)
        return prepared.result


async def _called(granted: Granted, call: EffectCall) -> Any:
    attempt, decl, args = granted.request.attempt, granted.request.decl, granted.request.args
    async with asyncio.timeout(call_timeout(attempt.config, decl).total_seconds()):
        return await apart(decl.function(call, **args))
