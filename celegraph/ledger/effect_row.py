"""A row of the effect ledger, and what is known of it before it is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from psycopg.types.json import Jsonb

from celegraph.ledger.canonical import decode_result


@dataclass(frozen=True)
class NthCall:
    """Call number `attempts` under `key`, by the owner of `epoch` (0: by a dispatcher)."""

    key: str
    attempts: int
    epoch: int = 0


@dataclass(frozen=True)
class Sent:
    """What a performed call has brought: its result, encoded, the provider's id, and who says so."""

    result: Any
    ref: str | None
    by: str


@dataclass(frozen=True)
class Effect:
    """One intended act at a provider.  `result` is encoded (see `canonical`)."""

    idempotency_key: str
    run_id: str
    step: str
    tool: str
    slot: str
    args_hash: str
    args: Any
    mode: str
    status: str
    provider_ref: str | None
    result: Any
    error: Any
    attempts: int
    duplicates_prevented: int
    owner: str | None
    doubt_after: datetime | None
    created_at: datetime
    updated_at: datetime
    task_id: str | None = None
    execution: str | None = None
    released_at: datetime | None = None
    doubt_passed: bool | None = None
    doubt_in_s: float | None = None
    age_s: float | None = None
    agent: str | None = None
    run_ended: bool | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Effect:
        """The columns this class knows; a newer schema may have more."""
        return cls(**{name: row[name] for name in _columns() if name in row})

    def last_call(self, epoch: int = 0) -> NthCall:
        """The call that this row was claimed for, by the owner of `epoch`."""
        return NthCall(self.idempotency_key, self.attempts, epoch)

    @property
    def earlier_doubt(self) -> bool:
        """In a claimed row: nobody knows what the calls before this one did."""
        return self.status == "pending" and self.error is not None

    @property
    def unreleased(self) -> bool:
        """An outbox intent whose node's writes are not durable yet."""
        return self.mode == "outbox" and self.released_at is None

    @property
    def value(self) -> Any:
        """The result as the effect's caller gets it; None while there is none."""
        return decode_result(self.result) if self.done else None

    @property
    def done(self) -> bool:
        """It happened: its result is given back, and it is never performed again."""
        return self.status in ("sent", "confirmed")


@cache
def _columns() -> tuple[str, ...]:
    return tuple(f.name for f in fields(Effect))


@dataclass(frozen=True)
class Reservation:
    """Everything the ledger must know before a call: identity, body, and how long it may take."""

    key: str
    run_id: str
    epoch: int
    step: str
    tool: str
    slot: str
    args_hash: str
    args: Any
    owner: str
    horizon: timedelta  # call_window + timeout: from then on nobody can still be calling

    def params(self) -> dict[str, Any]:
        """The statement's parameters."""
        return vars(self) | {"args": Jsonb(self.args)}

    def row(self, columns: Mapping[str, Any]) -> Effect:
        """The row that this has become, with what the database has chosen."""
        return Effect(
            idempotency_key=self.key,
            run_id=self.run_id,
            step=self.step,
            tool=self.tool,
            slot=self.slot,
            args_hash=self.args_hash,
            args=self.args,
            mode="call",
            status="pending",
            provider_ref=None,
            result=None,
            error=None,
            attempts=1,
            duplicates_prevented=0,
            owner=self.owner,
            doubt_after=columns["doubt_after"],
            created_at=columns["created_at"],
            updated_at=columns["updated_at"],
        )
