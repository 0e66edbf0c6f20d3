"""The call is over: record what it did before anybody acts on it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from celegraph.agent.doubt import Stop
from celegraph.agent.effect import EffectCall
from celegraph.agent.failures import describe
from celegraph.agent.identify import Request, call_timeout
from celegraph.agent.lookups import call_of
from celegraph.agent.not_done import is_not_done
from celegraph.errors import InvalidValue
from celegraph.ledger import effects
from celegraph.ledger.canonical import check_size, decode_result, encode_result, stored_json
from celegraph.ledger.connect import ledger
from celegraph.ledger.db_errors import is_lost
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
        r = self.request
        return call_of(self.row, call_timeout(r.attempt.config, r.decl))


async def conclude(granted: Granted, call: EffectCall, value: Any) -> Any:
    """The call returned: record it before anybody sees the result."""
    attempt, key = granted.request.attempt, granted.request.reservation.key
    stored, problem = _encoded(granted, value)
    try:
        row = await effects.record_sent(
            attempt.pen,
            key,
            granted.attempts,
            attempt.epoch,
            result=stored,
            ref=call.provider_ref,
            by="call",
        )
    except Exception as error:
        if is_lost(error):
            # Fenced while it called: the pen is gone, but not the fact.
            await asyncio.to_thread(keep, granted, call, value)
        raise
    if row is None:
        row = replace(granted.row, status="sent", result=stored, provider_ref=call.provider_ref)
    attempt.effects.put(row)
    if problem is not None:
        raise problem
    # Not simply `stored`: a webhook that was faster may have brought the result, and re-runs get that.
    return decode_result(row.result)


def keep(granted: Granted, call: EffectCall, value: Any) -> None:
    """Record what a call did that has outlived its attempt, over a connection of its own."""
    attempt = granted.request.attempt
    stored, _ = _encoded(granted, value)
    with ledger(attempt.config) as conn:
        effects.keep_sent(
            conn,
            granted.row.idempotency_key,
            granted.attempts,
            attempt.epoch,
            result=stored,
            ref=call.provider_ref,
            by="call",
        )


def _encoded(granted: Granted, value: Any) -> tuple[Any, InvalidValue | None]:
    try:
        stored = encode_result(value)
        limit = granted.request.attempt.config.max_value_bytes
        check_size(stored_json(stored), limit, "result")
    except InvalidValue as problem:
        # It did happen; only its result cannot be kept.  Recorded first, reported then.
        return None, problem
    return stored, None


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
