"""Claim, call, record: the life of one effect call.

A call is made only by whoever holds the claim, and the claim is committed before the call.  Sync
effects run in the node's thread and hop to the attempt's loop for every ledger step; async effects
stay on the loop.  The steps are the same coroutines.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from celegraph.agent.advice import notice_call
from celegraph.agent.attempt import boot_time
from celegraph.agent.caller import Caller, arrive
from celegraph.agent.conclude import Granted, conclude, conclude_error, keep, kept_result
from celegraph.agent.doubt import Replay, Stop, answer_doubt
from celegraph.agent.effect import Declaration, EffectCall, Found
from celegraph.agent.flight import Flight
from celegraph.agent.identify import Request, call_timeout, identify
from celegraph.agent.lookups import look_up, look_up_async
from celegraph.agent.questions import ask_about_doubt, ask_for_call
from celegraph.errors import ApprovalRejected, AttemptOver, EffectFailed, EffectMisuse, EffectSkipped
from celegraph.ledger import effects
from celegraph.ledger.canonical import decode_result
from celegraph.ledger.effects import Effect

# -- the two doors ---------------------------------------------------------------------------------


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
    prepared = attempt.on_loop(_prepare(caller, decl, args, flight.outcome))
    while not isinstance(prepared, Replay):
        if isinstance(prepared, _Lookup):
            found = look_up(decl, prepared.row)
            prepared = attempt.on_loop(_after_lookup(prepared, found))
            continue
        call = prepared.call()
        if boot_time() > prepared.until:
            prepared = attempt.on_loop(_claim_again(prepared))
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
        prepared = attempt.on_loop(_meet(prepared.request, row))
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
    attempt = caller.attempt
    work = asyncio.current_task()
    assert work is not None
    with attempt.pen.shelter():
        prepared = await _prepare(caller, decl, args, work)
    while not isinstance(prepared, Replay):
        if isinstance(prepared, _Lookup):
            found = await look_up_async(decl, prepared.row, call_timeout(attempt.config, decl))
            prepared = await _after_lookup(prepared, found)
            continue
        call = prepared.call()
        if boot_time() > prepared.until:
            prepared = await _claim_again(prepared)
            continue
        try:
            async with asyncio.timeout(call_timeout(attempt.config, decl).total_seconds()):
                value = await decl.function(call, **prepared.request.args)
        except BaseException as error:
            row = await conclude_error(prepared, error)
            if row is None:
                raise
            prepared = await _meet(prepared.request, row)
            continue
        with attempt.pen.shelter():
            return await conclude(prepared, call, value)
    return prepared.result


# -- the steps, all on the loop --------------------------------------------------------------------


@dataclass(frozen=True)
class _Lookup:
    """The provider shall be asked what became of call number `row.attempts`."""

    request: Request
    row: Effect


_Prepared = Replay | Granted | _Lookup


async def _prepare(
    caller: Caller, decl: Declaration, args: dict[str, Any], outcome: asyncio.Future[Any]
) -> _Prepared:
    """What to do about this call; whoever reaches it again before `outcome` is known waits for that."""
    attempt = caller.attempt
    request = await identify(caller, decl, args)
    tool_call = caller.tool_call is not None
    notice_call(attempt, caller.place, router=caller.in_router, tool_call=tool_call)
    # Nothing is awaited in between: of two callers at once one makes the call, the other joins.
    if (running := attempt.calls.get(request.reservation.key)) is not None and not running.done():
        return Replay(await asyncio.shield(running))
    attempt.in_flight(request.reservation.key, outcome)
    if request.recorded is not None:
        return await _meet(request, request.recorded)
    return await _reserve(request)


async def _reserve(request: Request) -> _Prepared:
    attempt, reservation = request.attempt, request.reservation
    asked_at = boot_time()
    row = await effects.reserve(attempt.pen, reservation, approved=request.decl.requires_approval)
    if row is not None:
        return _granted(request, row, asked_at)
    if request.decl.requires_approval and reservation.key not in attempt.effects:
        return await _without_approval(request)
    return await _meet(request, await request.read_again())


async def _without_approval(request: Request) -> _Prepared:
    """No unused yes for exactly this call: a no ends it, silence asks."""
    attempt, r = request.attempt, request.reservation
    answers = [
        a
        for a in attempt.approvals
        if a.tool == r.tool and a.args_hash == r.args_hash and a.effect_key is None and a.kind != "doubt"
    ]
    if answers and answers[-1].status in ("rejected", "expired"):
        raise ApprovalRejected(r.tool, answers[-1].approval_id, answers[-1].status)
    raise await attempt.stop(ask_for_call(attempt, r, request.decl.shape))


def _granted(request: Request, row: Effect, asked_at: float) -> Granted:
    attempt = request.attempt
    attempt.effects.put(row)
    window = attempt.config.call_window.total_seconds()
    attempt.promise(window + call_timeout(attempt.config, request.decl).total_seconds())
    return Granted(request, row, asked_at + window)


async def _meet(request: Request, row: Effect) -> _Prepared:
    """A row is there: give back its result, try once more, or answer the doubt."""
    attempt = request.attempt
    if row.done:
        await effects.record_replay(attempt.pen, row, attempt.epoch)
        return Replay(decode_result(row.result))
    if row.status == "failed":
        if (row.error or {}).get("skipped"):
            raise EffectSkipped(row.tool, row.idempotency_key, row.error.get("by"), row.error.get("note"))
        if (row.error or {}).get("final"):
            raise EffectFailed(row.tool, row.idempotency_key, row.error.get("message") or "refused")
        return await _claim(request, row)
    row = await request.read_again()
    if row.status != "pending":
        return await _meet(request, row)
    answer = answer_doubt(request.decl, row)
    match answer:
        case "call":
            return await _claim(request, row)
        case "look up":
            return _Lookup(request, row)
        case "ask":
            raise await attempt.stop(ask_about_doubt(attempt, row))
        case Stop(outcome):
            raise await attempt.stop(outcome)
        case Replay():
            return answer


async def _claim(request: Request, row: Effect, *, settled: bool = False) -> _Prepared:
    request.attempt.check_open()
    asked_at = boot_time()
    claimed = await effects.claim(
        request.attempt.pen,
        request.reservation,
        status=row.status,
        attempts=row.attempts,
        settled=settled,
    )
    if claimed is None:
        # Somebody else answered or called meanwhile; what is true now decides.
        return await _meet(request, await request.read_again())
    return _granted(request, claimed, asked_at)


async def _claim_again(granted: Granted) -> _Prepared:
    """The claim is older than the call window (the machine slept): it was not used, take a new one."""
    attempt, key = granted.request.attempt, granted.request.reservation.key
    attempt.check_open()
    late = {"type": "celegraph.CallWindowMissed", "message": "the machine slept before the call"}
    if granted.row.earlier_doubt:
        await effects.record_doubt(attempt.pen, key, granted.attempts, attempt.epoch, late, over=True)
    else:
        await effects.record_failed(attempt.pen, key, granted.attempts, attempt.epoch, late)
    return await _meet(granted.request, await granted.request.read_again())


async def _after_lookup(lookup: _Lookup, found: Found) -> _Prepared:
    attempt, row = lookup.request.attempt, lookup.row
    answer = answer_doubt(lookup.request.decl, row, found)
    match answer:
        case Replay(result):
            stored, problem = kept_result(result, attempt.config.max_value_bytes)
            await effects.record_sent(
                attempt.pen,
                row.idempotency_key,
                row.attempts,
                attempt.epoch,
                result=stored,
                ref=getattr(found, "ref", None),
                by="look-up",
            )
            await lookup.request.read_again()
            if problem is not None:
                raise problem
            return Replay(decode_result(stored))
        case "ask":
            raise await attempt.stop(ask_about_doubt(attempt, row))
        case Stop(outcome):
            raise await attempt.stop(outcome)
    return await _claim(lookup.request, row, settled=True)
