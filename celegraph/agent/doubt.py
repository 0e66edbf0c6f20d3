"""The one place that says what follows when nobody knows whether a call happened.

Before `doubt_after` a call may still be under way: then nobody calls, and no "it did not happen" is
believed.  A look-up that finds the act is believed at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from celegraph.agent.declaration import Declaration, Found, Happened, NotHappened, Unknown
from celegraph.ledger.effect_row import Effect
from celegraph.ledger.outcomes import Sleeping, Waiting

# A look-up that cannot tell is repeated for this long past the horizon before a person is asked.
LOOK_UP_FOR = timedelta(minutes=10)


@dataclass(frozen=True)
class Replay:
    """The effect has happened; this is its result."""

    result: Any


@dataclass(frozen=True)
class Stop:
    """End the attempt with this outcome."""

    outcome: Waiting | Sleeping

    @classmethod
    def sleep(cls, seconds: float, why: str) -> Stop:
        """Look again later; the sleep is in the database, no worker waits."""
        return cls(Sleeping(timedelta(seconds=max(0.2, seconds)), f"effect in doubt: {why}"))

    @classmethod
    def back_off(cls, attempts: int, why: str) -> Stop:
        """1, 2, 4 ... 60 seconds."""
        return cls.sleep(min(60.0, 2.0 ** (attempts - 1)), why)


Answer = Replay | Stop | Literal["call", "ask", "look up"]


def answer_doubt(decl: Declaration, row: Effect, found: Found | None = None) -> Answer:
    """What to do about a pending row whose call is not in flight here.  `found` is a look-up's answer."""
    match found:
        case Happened(result):
            return Replay(result)
        case NotHappened():
            return _call_when_over(decl, row)
        case Unknown():
            return _unknown(row)
    match decl.in_doubt:
        case "reconcile":
            return "look up"
        case "retry":
            return _retry(decl, row)
    return "ask"


def _remaining(row: Effect) -> float:
    return row.doubt_in_s or 0.0


def _call_when_over(decl: Declaration, row: Effect) -> Answer:
    if row.attempts >= decl.tries:
        # A provider that fails this often in a row needs a person, not another try.
        return "ask"
    return "call" if row.doubt_passed else Stop.sleep(_remaining(row), "the last call may be under way")


def _retry(decl: Declaration, row: Effect) -> Answer:
    if decl.key_ttl is not None and (row.age_s or 0.0) >= decl.key_ttl.total_seconds():
        # The provider has forgotten the key by now: the same call would be a second act.
        return "ask"
    return _call_when_over(decl, row)


def _unknown(row: Effect) -> Answer:
    waited = -_remaining(row)
    if waited > LOOK_UP_FOR.total_seconds():
        return "ask"
    return Stop.sleep(min(60.0, max(1.0, waited)), "the look-up could not tell yet")
