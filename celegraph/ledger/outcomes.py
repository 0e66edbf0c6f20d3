"""What an attempt came to.  A value, settled in one place; exceptions are for surprises."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any


@dataclass(frozen=True)
class Ask:
    """A question to open with the outcome.  A `deadline` that is a span counts from the settle, by the
    database's time.  `asked`, `previous` and `args_schema` as in the row."""

    approval_id: str
    kind: str  # interrupt | effect | doubt | drift
    prompt: str
    ask: int = 1
    interrupt_id: str | None = None
    tool: str | None = None
    args: Any = None
    args_hash: str | None = None
    idempotency_key: str | None = None
    policy: dict[str, Any] = field(default_factory=dict)
    deadline: timedelta | datetime | None = None
    asked: dict[str, Any] | None = None
    previous: Any = None
    args_schema: dict[str, Any] | None = None


def deadline_of(ask: Ask) -> dict[str, Any]:
    """The deadline as statements take it: a span in seconds, or an instant."""
    match ask.deadline:
        case timedelta():
            return {"deadline": None, "deadline_s": ask.deadline.total_seconds(), "deadline_at": None}
        case datetime():
            return {"deadline": None, "deadline_s": None, "deadline_at": ask.deadline.isoformat()}
    return {"deadline": None, "deadline_s": None, "deadline_at": None}


@dataclass(frozen=True)
class Finished:
    """running -> finished: nothing is left to do."""

    output: Any


@dataclass(frozen=True)
class Waiting:
    """running -> waiting: for a decision, or for a deploy that knows the pending node."""

    reason: str
    asks: tuple[Ask, ...] = ()
    waits_for: str = "decision"


@dataclass(frozen=True)
class Sleeping:
    """running -> ready with wake_at: a transient failure backs off, a doubt waits for its horizon."""

    delay: timedelta
    reason: str
    retried: bool = False
    error: dict[str, Any] | None = None
    asks: tuple[Ask, ...] = ()


@dataclass(frozen=True)
class Failed:
    """running -> failed: going on would fail again."""

    reason: str
    error: dict[str, Any]


@dataclass(frozen=True)
class Drained:
    """running -> ready: the worker is going away; another one goes on."""

    reason: str


@dataclass(frozen=True)
class Cancelled:
    """running -> cancelled: somebody asked for it."""

    reason: str


@dataclass(frozen=True)
class Abandoned:
    """Nothing to write: the connection or the lease is gone, and with it the right to say anything."""

    reason: str


Outcome = Finished | Waiting | Sleeping | Failed | Drained | Cancelled | Abandoned
