"""Look-ups: asking the provider what became of a call, in the colour of whoever asks."""

from __future__ import annotations

import asyncio
import inspect
from datetime import timedelta
from typing import Any

from celegraph.agent.apart import apart
from celegraph.agent.declaration import Declaration, EffectCall, Found, Unknown
from celegraph.agent.failures import is_the_codes_own
from celegraph.errors import EffectMisuse
from celegraph.ledger.canonical import decode_result
from celegraph.ledger.effect_row import Effect


def call_of(row: Effect, timeout: timedelta = EffectCall.timeout) -> EffectCall:
    """The recorded call, as the effect's functions see it."""
    return EffectCall(
        key=row.idempotency_key,
        attempt=row.attempts,
        run_id=row.run_id,
        tool=row.tool,
        provider_ref=row.provider_ref,
        timeout=timeout,
    )


def body_of(row: Effect) -> dict[str, Any]:
    """The recorded business arguments, by name."""
    args = decode_result(row.args)
    return args if isinstance(args, dict) else {}


def look_up(decl: Declaration, row: Effect) -> Found:
    """Ask with a plain `lookup`, in this thread.  A look-up that fails has not answered."""
    lookup: Any = decl.lookup
    try:
        found = lookup(call_of(row), **body_of(row))
    except Exception as error:
        return Unknown(type(error).__name__)
    if inspect.isawaitable(found):
        raise EffectMisuse(f"effect {decl.tool!r} is a plain function, its lookup must be one too")
    return _checked(decl, found)


async def look_up_async(decl: Declaration, row: Effect, within: timedelta) -> Found:
    """Ask with either kind of `lookup`, without blocking the loop.

    One that takes longer than `within` has not answered; a plain one's thread cannot be stopped and goes on.
    """
    lookup: Any = decl.lookup
    try:
        async with asyncio.timeout(within.total_seconds()):
            if not inspect.iscoroutinefunction(lookup):
                return await asyncio.to_thread(look_up, decl, row)
            found = await apart(lookup(call_of(row), **body_of(row)))
    except EffectMisuse:
        raise
    except BaseException as error:
        if not is_the_codes_own(error):
            raise
        return Unknown(type(error).__name__)
    return _checked(decl, found)


def _checked(decl: Declaration, found: object) -> Found:
    if not isinstance(found, Found):
        raise EffectMisuse(
            f"the lookup of effect {decl.tool!r} returned {type(found).__name__}; return Happened(result,"
            " ref), NotHappened() or Unknown(reason)"
        )
    return found
