"""What the pages read: lists by key, never by offset, and values cut to what a page can show.

Everything is read in one snapshot with a time limit, so that no page contradicts itself and no search
holds a web process for longer than a person waits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import errors as pg

from celegraph.config import Config
from celegraph.errors import ReadTooSlow, RunNotFound
from celegraph.ledger.connect import Conn
from celegraph.ledger.pool import ledger
from celegraph.ledger.queries import load
from celegraph.ledger.runs import Event
from celegraph.ledger.states import STATUSES

Q = load("listing")

# Nobody reads on; beyond it a list says "more than".
MOST_COUNTED = 10_000
# In a list: what it is about.
_LONGEST_PROMPT = 300
# Milliseconds.
_PATIENCE = b"SET LOCAL statement_timeout = 5000"

Key = tuple[datetime, str]
"""Where a page of a list ends: the time and the id of its last row."""


@contextmanager
def reading(config: Config) -> Iterator[Conn]:
    """One snapshot of the ledger for a page; a statement of more than five seconds is `ReadTooSlow`."""
    with ledger(config) as conn:
        try:
            with conn.transaction():
                conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                conn.execute(_PATIENCE)
                yield conn
        except pg.QueryCanceled as error:
            raise ReadTooSlow() from error


@dataclass(frozen=True)
class ListedRun:
    """A run as a list shows it."""

    run_id: str
    agent: str
    status: str
    reason: str | None
    tags: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    wake_at: datetime | None
    read_only: bool
    now: datetime

    @property
    def key(self) -> Key:
        """Its place in the list."""
        return self.created_at, self.run_id


@dataclass(frozen=True)
class ListedApproval:
    """An open question as a list shows it; its prompt is cut.

    `overdue`: its deadline has passed; it can still be answered if it `stays_open`, as a doubt does.
    """

    approval_id: str
    run_id: str
    agent: str
    run_status: str
    kind: str
    tool: str | None
    ask: int
    prompt: str
    cut: bool
    created_at: datetime
    deadline_at: datetime | None
    overdue: bool
    stays_open: bool
    now: datetime

    @property
    def key(self) -> Key:
        """Its place in the list."""
        return self.created_at, self.approval_id


@dataclass(frozen=True)
class Count:
    """How many questions are open, and how many of them past their deadline; at most `MOST_COUNTED`."""

    open: int
    overdue: int


@dataclass(frozen=True)
class CallState:
    """What a call has come to, without its values."""

    idempotency_key: str
    tool: str
    status: str
    provider_ref: str | None
    attempts: int
    updated_at: datetime
    under_way: bool
    doubt_after: datetime | None


@dataclass(frozen=True)
class RunVersion:
    """Whose run it is, and a word that changes whenever its page would."""

    agent: str
    status: str
    version: str


def agents(conn: Conn) -> list[str]:
    """Every agent that has runs, in order."""
    return [row["agent"] for row in conn.execute(Q.agents).fetchall()]


def list_runs(
    conn: Conn,
    agents: Sequence[str],
    *,
    statuses: Sequence[str] = STATUSES,
    text: str | None = None,
    tag: tuple[str, str] | None = None,
    before: Key | None = None,
    limit: int,
) -> list[ListedRun]:
    """Runs of these agents, the newest first.  `text` is part of the run_id, in any case of letters."""
    params = {
        "agents": list(agents),
        "statuses": list(statuses),
        "text": text,
        "tag": json.dumps(dict([tag])) if tag else None,
        "before_at": before[0] if before else None,
        "before_id": before[1] if before else None,
        "limit": limit,
    }
    return [ListedRun(**row) for row in conn.execute(Q.runs, params).fetchall()]


def inbox(
    conn: Conn,
    agents: Sequence[str],
    *,
    kinds: Sequence[str] | None = None,
    overdue: bool = False,
    after: Key | None = None,
    limit: int,
) -> list[ListedApproval]:
    """Open questions of these agents' runs, the oldest first."""
    params = {
        "agents": list(agents),
        "kinds": list(kinds) if kinds is not None else None,
        "overdue": overdue,
        "after_at": after[0] if after else None,
        "after_id": after[1] if after else None,
        "longest": _LONGEST_PROMPT,
        "limit": limit,
    }
    return [ListedApproval(**row) for row in conn.execute(Q.inbox, params).fetchall()]


def inbox_count(
    conn: Conn, agents: Sequence[str], *, kinds: Sequence[str] | None = None, overdue: bool = False
) -> Count:
    """How many `inbox` would list without a limit."""
    params = {
        "agents": list(agents),
        "kinds": list(kinds) if kinds is not None else None,
        "overdue": overdue,
        "most": MOST_COUNTED,
    }
    row = conn.execute(Q.inbox_count, params).fetchone()
    assert row is not None
    return Count(**row)


def call_state(conn: Conn, key: str | None) -> CallState | None:
    """The effect of this key, if there is one."""
    row = conn.execute(Q.effect_of, {"key": key}).fetchone()
    return CallState(**row) if row else None


def run_approvals(conn: Conn, run_id: str, *, limit: int) -> Sequence[Mapping[str, Any]]:
    """The newest questions of the run, the oldest of them first."""
    params = {"run_id": run_id, "limit": limit, "longest": _LONGEST_PROMPT}
    return conn.execute(Q.run_approvals, params).fetchall()[::-1]


def run_effects(conn: Conn, run_id: str, *, limit: int, longest: int) -> Sequence[Mapping[str, Any]]:
    """The newest effects of the run, the oldest of them first; values as JSON text of `longest` letters."""
    params = {"run_id": run_id, "limit": limit, "longest": longest}
    return conn.execute(Q.run_effects, params).fetchall()[::-1]


def newest_events(conn: Conn, run_id: str, *, limit: int) -> list[Event]:
    """The newest events of the run in order, without any call's arguments."""
    rows = conn.execute(Q.newest_events, {"run_id": run_id, "limit": limit}).fetchall()
    return [Event(**row) for row in rows]


def run_values(conn: Conn, run_id: str, *, longest: int) -> Mapping[str, Any]:
    """`input`, `output` and `error` as JSON text of at most `longest` letters, and `..._length` of each."""
    row = conn.execute(Q.run_values, {"run_id": run_id, "longest": longest}).fetchone()
    if row is None:
        raise RunNotFound(run_id)
    return row


def run_value(conn: Conn, run_id: str, part: str) -> tuple[str, Any]:
    """The run's agent, and its input, output or error in full."""
    row = conn.execute(Q.run_value, {"run_id": run_id, "part": part}).fetchone()
    if row is None:
        raise RunNotFound(run_id)
    return row["agent"], row["value"]


def run_version(conn: Conn, run_id: str) -> RunVersion:
    """See the class.  Cheap: asked every few seconds by everybody who has the run's page open."""
    row = conn.execute(Q.run_version, {"run_id": run_id}).fetchone()
    if row is None:
        raise RunNotFound(run_id)
    return RunVersion(**row)
