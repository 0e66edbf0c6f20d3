"""Claims: what becomes of a call that the graph wants.  It gets the right to be made, is given a recorded
result, has its provider asked, or ends the attempt.

Every step runs on the attempt's loop; nothing here calls the provider.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from celegraph.agent.advice import notice_call
from celegraph.agent.attempt import boot_time
from celegraph.agent.caller import Caller
from celegraph.agent.conclude import Granted, kept_result
from celegraph.agent.declaration import Declaration, Found
from celegraph.agent.doubt import Replay, Stop, answer_doubt
from celegraph.agent.identify import Request, call_timeout, identify
from celegraph.agent.questions import ask_about_doubt, ask_for_call
from celegraph.errors import ApprovalRejected, EffectFailed, EffectSkipped
from celegraph.ledger import effects, remarks
from celegraph.ledger.canonical import decode_result
from celegraph.ledger.effect_row import Effect, Sent


@dataclass(frozen=True)
class Lookup:
    """The provider shall be asked what became of call number `row.attempts`."""

    request: Request
    row: Effect


Prepared = Replay | Granted | Lookup


async def prepare(
    caller: Caller, decl: Declaration, args: dict[str, Any], outcome: asyncio.Future[Any]
) -> Prepared:
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
        return await meet(request, request.recorded)
    return await _reserve(request)


async def _reserve(request: Request) -> Prepared:
    attempt, reservation = request.attempt, request.reservation
    asked_at = boot_time()
    row = await effects.reserve(attempt.pen, reservation, approved=request.decl.requires_approval)
    if row is not None:
        return _granted(request, row, asked_at)
    if request.decl.requires_approval and reservation.key not in attempt.effects:
        return await _without_approval(request)
    return await meet(request, await request.read_again())


async def _without_approval(request: Request) -> Prepared:
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


async def meet(request: Request, row: Effect) -> Prepared:
    """A row is there: give back its result, try once more, or answer the doubt."""
    attempt = request.attempt
    if row.done:
        await remarks.record_replay(attempt.pen, row, attempt.epoch)
        return Replay(decode_result(row.result))
    if row.status == "failed":
        if (row.error or {}).get("skipped"):
            raise EffectSkipped(row.tool, row.idempotency_key, row.error.get("by"), row.error.get("note"))
        if (row.error or {}).get("final"):
            raise EffectFailed(row.tool, row.idempotency_key, row.error.get("message") or "refused")
        return await _claim(request, row)
    row = await request.read_again()
    if row.status != "pending":
        return await meet(request, row)
    answer = answer_doubt(request.decl, row)
    match answer:
        case "call":
            return await _claim(request, row)
        case "look up":
            return Lookup(request, row)
        case "ask":
            raise await attempt.stop(ask_about_doubt(attempt, row))
        case Stop(outcome):
            raise await attempt.stop(outcome)
        case Replay():
            return answer


async def _claim(request: Request, row: Effect, *, settled: bool = False) -> Prepared:
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
        return await meet(request, await request.read_again())
    return _granted(request, claimed, asked_at)


async def claim_again(granted: Granted) -> Prepared:
    """The claim is older than the call window (the machine slept): it was not used, take a new one."""
    attempt = granted.request.attempt
    attempt.check_open()
    late = {"type": "celegraph.CallWindowMissed", "message": "the machine slept before the call"}
    if granted.row.earlier_doubt:
        await effects.record_doubt(attempt.pen, granted.nth, late, over=True)
    else:
        await effects.record_failed(attempt.pen, granted.nth, late)
    return await meet(granted.request, await granted.request.read_again())


async def after_lookup(lookup: Lookup, found: Found) -> Prepared:
    """What a look-up's answer means: the act's result, a new claim, a question, or a later look."""
    attempt, row = lookup.request.attempt, lookup.row
    answer = answer_doubt(lookup.request.decl, row, found)
    match answer:
        case Replay(result):
            stored, problem = kept_result(result, attempt.config.max_value_bytes)
            sent = Sent(stored, getattr(found, "ref", None), "look-up")
            await effects.record_sent(attempt.pen, row.last_call(attempt.epoch), sent)
            await lookup.request.read_again()
            if problem is not None:
                raise problem
            return Replay(decode_result(stored))
        case "ask":
            raise await attempt.stop(ask_about_doubt(attempt, row))
        case Stop(outcome):
            raise await attempt.stop(outcome)
    return await _claim(lookup.request, row, settled=True)
