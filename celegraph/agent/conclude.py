"""The call is over: record what it did before anybody acts on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from celegraph.agent.doubt import Stop
from celegraph.agent.effect import EffectCall
from celegraph.agent.failures import describe
from celegraph.agent.identify import Request
from celegraph.agent.lookups import call_of
from celegraph.agent.not_done import is_not_done
from celegraph.errors import InvalidValue
from celegraph.ledger import effects
from celegraph.ledger.canonical import check_size, decode_result, encode_result, stored_json
from celegraph.ledger.effects import Effect


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
        return call_of(self.row)


async def conclude(granted: Granted, call: EffectCall, value: Any) -> Any:
    """The call returned: record it before anybody sees the result."""
    attempt, key = granted.request.attempt, granted.request.reservation.key
    problem: InvalidValue | None = None
    try:
        stored = encode_result(value)
        check_size(stored_json(stored), attempt.config.max_value_bytes, "result")
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


async def conclude_error(granted: Granted, error: BaseException) -> Effect | None:
    """The call raised: record what that proves.  None: raise it on; else the row, now in doubt."""
    attempt, r = granted.request.attempt, granted.request.reservation
    decl = granted.request.decl
    facts = describe(error)
    # A proof speaks of its own call: that an earlier one did nothing is not proven by it.
    if is_not_done(decl, error) and not granted.row.earlier_doubt:
        await effects.record_failed(attempt.pen, r.key, granted.attempts, attempt.epoch, facts)
        row = await granted.request.read_again()
        return row if row.done else None
    shorten = decl.in_doubt == "retry"
    await effects.record_doubt(attempt.pen, r.key, granted.attempts, attempt.epoch, facts, over=shorten)
    row = await granted.request.read_again()
    if not isinstance(error, Exception):
        return None  # the process or the attempt is being torn down; the next attempt meets the doubt
    attempt.check_open()
    if shorten and row.status == "pending":
        raise await attempt.stop(Stop.back_off(granted.attempts, type(error).__name__).outcome)
    return row
