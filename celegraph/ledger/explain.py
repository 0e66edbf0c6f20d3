"""Everything that bears on why one run moves or does not, read in one snapshot.  Facts, no sentences."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from celegraph.ledger.connect import Conn
from celegraph.ledger.queries import load
from celegraph.ledger.runs import Run, get_run
from celegraph.ledger.sweep import last_tick

Q = load("explain")


@dataclass(frozen=True)
class Holder:
    """The lease as it is.  `locked`: the owner's session is there; `expired`: it has not beaten.

    `heartbeat_due_s`: until the agent's own heartbeat is overdue; None when it has not promised any.
    """

    since: datetime | None
    locked: bool
    beat_age_s: float | None
    loop_age_s: float | None
    expired: bool
    heartbeat_due_s: float | None
    progress: Any


@dataclass(frozen=True)
class LastStep:
    """The newest durable step of the outermost graph, and the nodes it wanted next."""

    at: datetime
    step: int
    next: list[str]


@dataclass(frozen=True)
class Question:
    """An open question, or an answer that no attempt has taken in yet."""

    approval_id: str
    kind: str
    tool: str | None
    key: str | None
    status: str
    created_at: datetime
    deadline_at: datetime | None
    decided_at: datetime | None
    decided_by: str | None
    open_for_s: float
    deadline_in_s: float | None
    silence: str | None = None


@dataclass(frozen=True)
class Pending:
    """A call whose record is missing: under way until its horizon, in doubt after it."""

    key: str
    tool: str
    step: str
    attempts: int
    owner: str | None
    doubt_in_s: float


@dataclass(frozen=True)
class Intent:
    """An enqueued effect that is not made yet; `tries_in_s` None: it failed too often, a dead letter."""

    key: str
    tool: str
    attempts: int
    tries_in_s: float | None


# The duties on beat that a run may wait for.
_TICKS = ("sweep", "escalate", "dispatch")


@dataclass(frozen=True)
class Picture:
    """One run at one moment.  `ages`: seconds since each duty on beat ran, if it ever did."""

    run: Run
    holder: Holder | None
    last_step: LastStep | None
    questions: list[Question]
    pending: list[Pending]
    intents: list[Intent]
    ages: dict[str, float]

    @property
    def open(self) -> list[Question]:
        """Questions nobody has answered."""
        return [q for q in self.questions if q.status == "open"]

    @property
    def answers(self) -> list[Question]:
        """Answers that no attempt has taken in: they make the run due."""
        return [q for q in self.questions if q.status != "open"]


def picture(conn: Conn, run_id: str) -> Picture:
    """The run and all about it, or `RunNotFound`.  One snapshot: its parts never contradict each other."""
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return look(conn, run_id)


def look(conn: Conn, run_id: str) -> Picture:
    """The same in the caller's own snapshot."""
    run = get_run(conn, run_id)
    params = {"run_id": run_id}
    holder = conn.execute(Q.holder, params).fetchone()
    step = conn.execute(Q.last_step, params).fetchone()
    ticks = {name: last_tick(conn, name) for name in _TICKS}
    return Picture(
        run=run,
        holder=Holder(**holder) if holder else None,
        last_step=LastStep(**step) if step else None,
        questions=[Question(**row) for row in conn.execute(Q.questions, params).fetchall()],
        pending=[Pending(**row) for row in conn.execute(Q.pending, params).fetchall()],
        intents=[Intent(**row) for row in conn.execute(Q.intents, params).fetchall()],
        ages={name: tick.age_s for name, tick in ticks.items() if tick is not None},
    )
