"""Approvals: questions to people and their answers.  First decision wins; a deadline is nobody's no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from celegraph.errors import ApprovalNotFound
from celegraph.ledger.connect import AnyConn, Conn
from celegraph.ledger.pen import Pen
from celegraph.ledger.plain import sought, sought_if
from celegraph.ledger.queries import load
from celegraph.ledger.states import TERMINAL
from celegraph.ledger.values import check_note, check_person

Q = load("approvals")


@dataclass(frozen=True)
class Approval:
    """One question.  `args` are canonical JSON values; `decision` holds verb, args and value.

    `asked` names agent, node and step; `previous` what was decided on when the question is asked again;
    `silence` what the deadline answers (None: nothing, it is brought up again).
    """

    approval_id: str
    run_id: str
    kind: str
    interrupt_id: str | None
    ask: int
    prompt: str
    tool: str | None
    args: Any
    args_hash: str | None
    idempotency_key: str | None
    effect_key: str | None
    status: str
    decision: Any
    decided_by: str | None
    note: str | None
    decided_at: datetime | None
    consumed_at: datetime | None
    policy: Mapping[str, Any]
    deadline_at: datetime | None
    created_at: datetime
    asked: Any = None
    previous: Any = None
    args_schema: Any = None
    silence: str | None = None
    stage: int = 0
    next_action_at: datetime | None = None
    agent: str | None = None
    run_status: str | None = None
    run_read_only: bool = False
    now: datetime | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Approval:
        """The columns this class knows; a newer schema may have more."""
        return cls(**{f.name: row[f.name] for f in fields(cls) if f.name in row})

    @property
    def run_has_ended(self) -> bool:
        """An answer is recorded; it matters only to a retry, if the run has failed."""
        return self.run_status in TERMINAL

    @property
    def overdue(self) -> bool:
        """Open, but past a deadline at which silence answers: nobody can decide it any more."""
        return (
            self.status == "open"
            and self.silence is not None
            and self.deadline_at is not None
            and self.now is not None
            and self.deadline_at <= self.now
        )


async def of_run(pen: Pen, run_id: str) -> list[Approval]:
    """Everything ever asked in this run, oldest first."""
    return [Approval.from_row(row) for row in await pen.fetch(Q.of_run, {"run_id": run_id})]


def get_approval(conn: AnyConn, approval_id: str) -> Approval:
    """The question, or `ApprovalNotFound`."""
    row = conn.execute(Q.get, {"approval_id": sought(approval_id)}).fetchone()
    if row is None:
        raise ApprovalNotFound(approval_id)
    return Approval.from_row(row)


def list_approvals(
    conn: Conn, *, status: str | None = "open", run_id: str | None = None, limit: int = 100
) -> list[Approval]:
    """Questions of one status (None: all), oldest first."""
    params = {"status": sought_if(status), "run_id": sought_if(run_id), "limit": limit}
    rows = conn.execute(Q.list, params).fetchall()
    return [Approval.from_row(row) for row in rows]


def decide(
    conn: AnyConn,
    approval_id: str,
    status: str,
    decision: Mapping[str, Any],
    *,
    by: str,
    note: str | None = None,
    args: Any = None,
    args_hash: str | None = None,
) -> bool:
    """open -> approved | rejected.  False: somebody, or the deadline, was first."""
    params = {
        "approval_id": approval_id,
        "status": status,
        "decision": Jsonb(dict(decision)),
        "by": check_person(by),
        "note": check_note(note, path="note"),
        "args": Jsonb(args) if args_hash is not None else None,
        "args_hash": args_hash,
    }
    return conn.execute(Q.decide, params).fetchone() is not None


@dataclass(frozen=True)
class Moved:
    """A question whose policy has acted.  `closed`: silence has answered it, as `silence` says."""

    approval_id: str
    run_id: str
    silence: str | None
    closed: bool


def move_due(conn: Conn, *, limit: int = 100) -> Sequence[Moved]:
    """Do what the policies say for this instant: remind, escalate, expire.  Each step once, however many
    ticks run; the notices that go with it are enqueued in the same transaction."""
    return [Moved(**row) for row in conn.execute(Q.move_due, {"limit": limit}).fetchall()]
