"""The call is over: record what it did before anybody acts on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from celegraph.agent.declaration import EffectCall
from celegraph.agent.doubt import Stop
from celegraph.agent.failures import describe, is_the_codes_own
from celegraph.agent.identify import Request, call_timeout
from celegraph.agent.lookups import call_of
from celegraph.agent.not_done import is_not_done
from celegraph.config import Config
from celegraph.errors import InvalidValue
from celegraph.ledger import effects
from celegraph.ledger.canonical import check_size, decode_result, encode_result, stored_json
from celegraph.ledger.db_errors import is_passing
from celegraph.ledger.effect_row import Effect, NthCall, Sent
from celegraph.ledger.pen import Pen
from celegraph.ledger.pool import ledger


@dataclass(frozen=True)
class Granted:
    """The right to make the call that `row` was claimed for, until `until` on the boot-time clock."""

    request: Request
    row: Effect
    until: float

    @property
    def nth(self) -> NthCall:
        """Which call this is."""
        return self.row.last_call(self.request.attempt.epoch)

    def call(self) -> EffectCall:
        """What the author's function gets."""
        r = self.request
        return call_of(self.row, call_timeout(r.attempt.config, r.decl))


async def conclude(granted: Granted, call: EffectCall, value: Any) -> Any:
    """The call returned: record it before anybody sees the result."""
    attempt = granted.request.attempt
    stored, problem = kept_result(value, attempt.config.max_value_bytes)
    sent = Sent(stored, call.provider_ref, "call")
    written = await record_or_keep(attempt.pen, attempt.config, granted.nth, sent)
    written = written or {"status": "sent", "result": stored, "provider_ref": call.provider_ref}
    row = replace(granted.row, error=None, **written)
    attempt.effects.put(row)
    if problem is not None:
        raise problem
    # Not simply `stored`: a webhook that was faster may have brought the result, and re-runs get that.
    return decode_result(row.result)


async def record_or_keep(pen: Pen, config: Config, call: NthCall, sent: Sent) -> Mapping[str, Any] | None:
    """As `record_sent`; when the pen is lost or its statement cut, over another connection before the error
    goes on.

    The record is gone, but not the fact: else somebody would be asked what is known here.
    """
    try:
        return await effects.record_sent(pen, call, sent)
    except Exception as error:
        if is_passing(error):
            await asyncio.to_thread(_keep, config, call, sent)
        raise


def keep(granted: Granted, call: EffectCall, value: Any) -> None:
    """Record what a call did that has outlived its attempt, over a connection of its own."""
    config = granted.request.attempt.config
    stored, _ = kept_result(value, config.max_value_bytes)
    _keep(config, granted.nth, Sent(stored, call.provider_ref, "call"))


def _keep(config: Config, call: NthCall, sent: Sent) -> None:
    with ledger(config) as conn:
        effects.keep_sent(conn, call, sent)


def kept_result(value: Any, limit: int) -> tuple[Any, InvalidValue | None]:
    """What a call returned, as it is stored.  With a problem: it did happen, only its result cannot be
    kept; to be recorded first and reported then."""
    try:
        stored = encode_result(value)
        check_size(stored_json(stored), limit, "result")
    except InvalidValue as problem:
        return None, problem
    except Exception as error:
        # Code of the value's own class ran and failed; what the provider did is a fact all the same.
        unread = InvalidValue("result", f"cannot be read: {type(error).__name__}")
        unread.__cause__ = error
        return None, unread
    return stored, None


async def conclude_error(granted: Granted, error: BaseException) -> Effect | None:
    """The call raised: record what that proves.  None: raise it on; else the row, now in doubt."""
    attempt, decl = granted.request.attempt, granted.request.decl
    facts = describe(error)
    # A proof speaks of its own call: that an earlier one did nothing is not proven by it.
    if is_not_done(decl, error) and not granted.row.earlier_doubt:
        await effects.record_failed(attempt.pen, granted.nth, facts)
        row = await granted.request.read_again()
        return row if row.done else None
    shorten = decl.in_doubt == "retry"
    await effects.record_doubt(attempt.pen, granted.nth, facts, over=shorten)
    row = await granted.request.read_again()
    if not is_the_codes_own(error):
        return None  # the process or the attempt is being torn down; the next attempt meets the doubt
    attempt.check_open()
    if shorten and row.status == "pending":
        raise await attempt.stop(Stop.back_off(granted.row.attempts, type(error).__name__).outcome)
    return row
