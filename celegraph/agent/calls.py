"""Claim, call, record: the life of one effect call.

A call is made only by whoever holds the claim, and the claim is committed before the call.  Sync
effects run in the node's thread and hop to the attempt's loop for every ledger step; async effects
stay on the loop.  The steps are the same coroutines.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from celegraph.agent.attempt import Attempt, boot_time
from celegraph.agent.caller import Caller, arrive
from celegraph.agent.doubt import Replay, Stop, answer_doubt
from celegraph.agent.effect import Declaration, EffectCall, Found, Unknown
from celegraph.agent.failures import describe
from celegraph.agent.not_done import is_not_done
from celegraph.agent.questions import answered_drift, ask_about_doubt, ask_about_drift, ask_for_call
from celegraph.agent.slots import Slot, Taken, another_slot, find_slot
from celegraph.config import Config
from celegraph.errors import (
    ApprovalRejected,
    EffectDrift,
    EffectMisuse,
    EffectsDisabled,
    EffectSkipped,
    InvalidValue,
)
from celegraph.ledger import effects
from celegraph.ledger.canonical import canonical_json, check_size, decode_result, encode_result
from celegraph.ledger.effects import Effect, Reservation
from celegraph.ledger.keys import args_hash, effect_key


@dataclass(frozen=True)
class Request:
    """A call that an author's code wants, with its identity worked out."""

    attempt: Attempt
    decl: Declaration
    args: dict[str, Any]
    reservation: Reservation
    recorded: Effect | None


@dataclass(frozen=True)
class Granted:
    """The right to make call number `attempts`, until `until` on the boot-time clock."""

    request: Request
    row: Effect
    until: float

    @property
    def attempts(self) -> int:
        """Which call this is, from 1."""
        return self.row.attempts

    def call(self) -> EffectCall:
        """What the author's function gets."""
        r = self.request.reservation
        return EffectCall(key=r.key, attempt=self.attempts, run_id=r.run_id, tool=r.tool)


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
    prepared = attempt.on_loop(_prepare(caller, decl, args))
    while not isinstance(prepared, Replay):
        if isinstance(prepared, _Lookup):
            found = _sync_found(decl, prepared)
            prepared = attempt.on_loop(_after_lookup(prepared, found))
            continue
        call = prepared.call()
        if boot_time() > prepared.until:
            prepared = attempt.on_loop(_claim_again(prepared))
            continue
        try:
            value = decl.function(call, **prepared.request.args)
        except BaseException as error:
            outcome = attempt.on_loop(_conclude_error(prepared, call, error))
            if outcome is None:
                raise
            prepared = outcome
            continue
        return attempt.on_loop(_conclude(prepared, call, value))
    return prepared.result


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
    prepared = await _prepare(caller, decl, args)
    while not isinstance(prepared, Replay):
        if isinstance(prepared, _Lookup):
            prepared = await _after_lookup(prepared, await _async_found(decl, prepared))
            continue
        call = prepared.call()
        if boot_time() > prepared.until:
            prepared = await _claim_again(prepared)
            continue
        _announce(prepared)
        try:
            async with asyncio.timeout(call_timeout(attempt.config, decl).total_seconds()):
                value = await decl.function(call, **prepared.request.args)
        except BaseException as error:
            outcome = await _conclude_error(prepared, call, error)
            if outcome is None:
                raise
            prepared = outcome
            continue
        return await _conclude(prepared, call, value)
    return prepared.result


def _announce(granted: Granted) -> None:
    """This call is in flight here: whoever reaches it again in this attempt joins it."""
    attempt, key = granted.request.attempt, granted.request.reservation.key
    work = asyncio.current_task()
    assert work is not None
    attempt.calls[key] = work
    work.add_done_callback(lambda _: attempt.calls.pop(key, None))


# -- the steps, all on the loop --------------------------------------------------------------------


@dataclass(frozen=True)
class _Lookup:
    """The provider shall be asked what became of call number `row.attempts`."""

    request: Request
    row: Effect


_Prepared = Replay | Granted | _Lookup


async def identify(caller: Caller, decl: Declaration, args: dict[str, Any]) -> Request:
    """Check the call and find out which one it is; its slot is claimed for this pass."""
    attempt = caller.attempt
    attempt.check_open()
    if attempt.run.read_only:
        raise EffectsDisabled(attempt.run_id, decl.tool)
    check_size(canonical_json(args, path="args"), attempt.config.max_value_bytes, "args")
    hashed = args_hash(args)
    # From here to the reservation nothing is awaited: parallel calls must not find the same slot free.
    execution = attempt.execution(caller.place.execution)
    found = find_slot(
        attempt.effects.at(caller.step, decl.tool),
        Taken(execution.claimed, caller.step, decl.tool),
        hashed,
        named=caller.slot,
        ordered=caller.ordered,
    )
    if found.drifted:
        found = await _drift(caller, decl, args, hashed, found, execution.claimed)
    return _request(caller, decl, args, hashed, found)


async def _prepare(caller: Caller, decl: Declaration, args: dict[str, Any]) -> _Prepared:
    attempt = caller.attempt
    request = await identify(caller, decl, args)
    if (running := attempt.calls.get(request.reservation.key)) is not None:
        return Replay(await asyncio.shield(running))
    if request.recorded is not None:
        return await _meet(request, request.recorded)
    return await _reserve(request)


async def _drift(
    caller: Caller,
    decl: Declaration,
    args: dict[str, Any],
    hashed: str,
    found: Slot,
    claimed: set[tuple[str, str, str]],
) -> Slot:
    """The recorded call of this slot has other arguments.  Never a silent second call."""
    attempt, recorded = caller.attempt, found.recorded
    assert recorded is not None
    named = caller.slot is not None or caller.tool_call is not None
    policy = decl.on_drift or ("keep" if named else "ask")
    if policy == "fail":
        await effects.record_drift(attempt.pen, recorded, attempt.epoch, "fail", encode_result(args))
        raise EffectDrift(decl.tool, recorded.idempotency_key)
    if policy == "ask":
        answer = answered_drift(attempt, recorded, hashed)
        if answer is None:
            raise await attempt.stop(ask_about_drift(attempt, recorded, encode_result(args), hashed))
        if answer == "perform":
            taken = Taken(claimed, caller.step, decl.tool)
            rows = attempt.effects.at(caller.step, decl.tool)
            return another_slot(rows, taken, hashed)
    await effects.record_drift(attempt.pen, recorded, attempt.epoch, "keep", encode_result(args))
    return found


def _request(caller: Caller, decl: Declaration, args: dict[str, Any], hashed: str, slot: Slot) -> Request:
    attempt, row = caller.attempt, slot.recorded
    encoded = encode_result(args, path="args")
    if row is not None:
        args, encoded = _recorded_body(row, args, encoded), row.args
    key = (
        row.idempotency_key
        if row is not None
        else effect_key(attempt.run_id, caller.step, decl.tool, slot.name, hashed)
    )
    reservation = Reservation(
        key=key,
        run_id=attempt.run_id,
        epoch=attempt.epoch,
        step=caller.step,
        tool=decl.tool,
        slot=slot.name,
        args_hash=row.args_hash if row is not None else hashed,
        args=encoded,
        owner=f"epoch {attempt.epoch}",
        horizon=attempt.config.call_window + call_timeout(attempt.config, decl),
    )
    return Request(attempt, decl, args, reservation, row)


def _recorded_body(row: Effect, args: dict[str, Any], encoded: Any) -> dict[str, Any]:
    """The body fixed at the first claim: a provider compares it byte by byte with the same key's first.

    Equal by value is not equal by bytes (1 and 1.0); classes, however, are stored as plain dicts, and
    then the caller's own objects, equal by value, are the better copy.
    """
    recorded = decode_result(row.args)
    plain = decode_result(encoded) == args
    return recorded if plain and isinstance(recorded, dict) else args


def call_timeout(config: Config, decl: Declaration) -> timedelta:
    """How long one call may take, by its declaration or the configuration."""
    return decl.timeout or config.effect_timeout


async def _reserve(request: Request) -> _Prepared:
    attempt, reservation = request.attempt, request.reservation
    asked_at = boot_time()
    row = await effects.reserve(attempt.pen, reservation, approved=request.decl.requires_approval)
    if row is not None:
        return _granted(request, row, asked_at)
    if request.decl.requires_approval and reservation.key not in attempt.effects:
        return await _without_approval(request)
    return await _meet(request, await effects.state(attempt.pen, reservation.key))


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
    raise await attempt.stop(ask_for_call(attempt, r))


def _granted(request: Request, row: Effect, asked_at: float) -> Granted:
    request.attempt.effects.put(row)
    window = request.attempt.config.call_window.total_seconds()
    return Granted(request, row, asked_at + window)


async def _read_again(request: Request) -> Effect:
    row = await effects.state(request.attempt.pen, request.reservation.key)
    request.attempt.effects.put(row)
    return row


async def _meet(request: Request, row: Effect) -> _Prepared:
    """A row is there: give back its result, try once more, or answer the doubt."""
    attempt = request.attempt
    if row.done:
        await effects.record_replay(attempt.pen, row, attempt.epoch)
        return Replay(decode_result(row.result))
    if row.status == "failed":
        if (row.error or {}).get("skipped"):
            raise EffectSkipped(row.tool, row.idempotency_key, row.error.get("by"), row.error.get("note"))
        return await _claim(request, row)
    row = await _read_again(request)
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


async def _claim(request: Request, row: Effect) -> _Prepared:
    asked_at = boot_time()
    claimed = await effects.claim(
        request.attempt.pen, request.reservation, status=row.status, attempts=row.attempts
    )
    if claimed is None:
        # Somebody else answered or called meanwhile; what is true now decides.
        return await _meet(request, await _read_again(request))
    return _granted(request, claimed, asked_at)


async def _claim_again(granted: Granted) -> _Prepared:
    """The claim is older than the call window (the machine slept): it was not used, take a new one."""
    attempt, key = granted.request.attempt, granted.request.reservation.key
    attempt.check_open()
    late = {"type": "celegraph.CallWindowMissed", "message": "the machine slept before the call"}
    await effects.record_failed(attempt.pen, key, granted.attempts, attempt.epoch, late)
    return await _meet(granted.request, await _read_again(granted.request))


async def _after_lookup(lookup: _Lookup, found: Found) -> _Prepared:
    attempt, row = lookup.request.attempt, lookup.row
    answer = answer_doubt(lookup.request.decl, row, found)
    match answer:
        case Replay(result):
            stored = encode_result(result)
            await effects.record_sent(
                attempt.pen,
                row.idempotency_key,
                row.attempts,
                attempt.epoch,
                result=stored,
                ref=getattr(found, "ref", None),
                by="look-up",
            )
            await _read_again(lookup.request)
            return Replay(decode_result(stored))
        case "ask":
            raise await attempt.stop(ask_about_doubt(attempt, row))
        case Stop(outcome):
            raise await attempt.stop(outcome)
    return await _claim(lookup.request, row)


async def _conclude(granted: Granted, call: EffectCall, value: Any) -> Any:
    """The call returned: record it before anybody sees the result."""
    attempt, key = granted.request.attempt, granted.request.reservation.key
    problem: InvalidValue | None = None
    try:
        stored = encode_result(value)
        check_size(canonical_json(stored, path="result"), attempt.config.max_value_bytes, "result")
    except InvalidValue as error:
        # It did happen; only its result cannot be kept.  Recorded first, reported then.
        stored, problem = None, error
    await effects.record_sent(
        attempt.pen,
        key,
        granted.attempts,
        attempt.epoch,
        result=stored,
        ref=call.provider_ref,
        by="call",
    )
    attempt.effects.put(replace(granted.row, status="sent", result=stored, provider_ref=call.provider_ref))
    if problem is not None:
        raise problem
    return decode_result(stored)


async def _conclude_error(granted: Granted, call: EffectCall, error: BaseException) -> _Prepared | None:
    """The call raised.  None: raise it on; else what follows from the effect's policy."""
    attempt, r = granted.request.attempt, granted.request.reservation
    decl = granted.request.decl
    if is_not_done(decl, error):
        await effects.record_failed(attempt.pen, r.key, granted.attempts, attempt.epoch, describe(error))
        await _read_again(granted.request)
        return None
    facts = describe(error)
    shorten = decl.in_doubt == "retry"
    await effects.record_doubt(attempt.pen, r.key, granted.attempts, attempt.epoch, facts, over=shorten)
    row = await _read_again(granted.request)
    if not isinstance(error, Exception):
        return None  # the process or the attempt is being torn down; the next attempt meets the doubt
    attempt.check_open()
    if shorten:
        raise await attempt.stop(Stop.back_off(granted.attempts, type(error).__name__).outcome)
    return await _meet(granted.request, row)


# -- look-ups, in the caller's own colour ----------------------------------------------------------


def _lookup_call(lookup: _Lookup) -> tuple[EffectCall, dict[str, Any]]:
    row = lookup.row
    args = decode_result(row.args)
    call = EffectCall(
        key=row.idempotency_key,
        attempt=row.attempts,
        run_id=row.run_id,
        tool=row.tool,
        provider_ref=row.provider_ref,
    )
    return call, args if isinstance(args, dict) else {}


def _checked(decl: Declaration, found: object) -> Found:
    if not isinstance(found, Found):
        raise EffectMisuse(
            f"the lookup of effect {decl.tool!r} returned {type(found).__name__}; return Happened(result,"
            " ref), NotHappened() or Unknown(reason)"
        )
    return found


def _sync_found(decl: Declaration, lookup: _Lookup) -> Found:
    call, args = _lookup_call(lookup)
    function: Callable[..., Any] = decl.lookup  # type: ignore[assignment]
    try:
        found = function(call, **args)
    except Exception as error:
        return Unknown(type(error).__name__)  # a look-up that fails has not answered
    if inspect.isawaitable(found):
        raise EffectMisuse(f"effect {decl.tool!r} is a plain function, its lookup must be one too")
    return _checked(decl, found)


async def _async_found(decl: Declaration, lookup: _Lookup) -> Found:
    call, args = _lookup_call(lookup)
    function: Callable[..., Any] = decl.lookup  # type: ignore[assignment]
    try:
        if inspect.iscoroutinefunction(function):
            found = await function(call, **args)
        else:
            found = await asyncio.to_thread(function, call, **args)
    except Exception as error:
        return Unknown(type(error).__name__)  # a look-up that fails has not answered
    return _checked(decl, found)
