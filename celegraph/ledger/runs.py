"""Runs: admission, reading, and the changes people make.  The owner's transitions are in `leases`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from celegraph.errors import RunConflict, RunMoved, RunNotFound
from celegraph.ledger.connect import AnyConn, Conn
from celegraph.ledger.keys import lock_key
from celegraph.ledger.plain import sought, sought_if
from celegraph.ledger.queries import load
from celegraph.ledger.states import TERMINAL
from celegraph.ledger.values import check_note, check_person

Q = load("runs")


@dataclass(frozen=True)
class Run:
    """One row of `runs` with its lease.  `now` is the database's time of the reading.

    `fresh`, told to the run's owner: no attempt has stored a state yet.
    """

    run_id: str
    agent: str
    status: str
    reason: str | None
    waits_for: str | None
    input: Any
    output: Any
    error: Any
    fingerprint: str | None
    crash_count: int
    hang_count: int
    retry_count: int
    max_crashes: int
    wake_at: datetime | None
    ring_at: datetime | None
    rung_at: datetime | None
    deadline_at: datetime | None
    cancel_requested_at: datetime | None
    read_only: bool
    tags: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    epoch: int
    worker_id: str | None = None
    beat_at: datetime | None = None
    loop_seen_at: datetime | None = None
    expires_at: datetime | None = None
    draining: bool = False
    progress: Any = None
    pause_requested_at: datetime | None = None
    now: datetime | None = None
    fresh: bool = False

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Run:
        """The columns this class knows; a newer schema may have more."""
        return cls(**{f.name: row[f.name] for f in fields(cls) if f.name in row})

    @property
    def terminal(self) -> bool:
        """The run has ended: finished, failed or cancelled."""
        return self.status in TERMINAL


@dataclass(frozen=True)
class Admission:
    """A checked request for a run; input is plain JSON."""

    run_id: str
    agent: str
    input: Any
    max_crashes: int
    delay: timedelta | None = None
    deadline: timedelta | None = None
    read_only: bool = False
    tags: Mapping[str, Any] | None = None
    trace_parent: str | None = None


def admit(conn: AnyConn, admission: Admission) -> bool:
    """(nothing) -> ready.  True if the run is new, False if the same request was admitted before.

    Raises `RunConflict` when the run_id stands for another agent or other input.
    """
    params = {
        "run_id": admission.run_id,
        "lock_key": lock_key(admission.run_id),
        "agent": admission.agent,
        "input": Jsonb(admission.input),
        "max_crashes": admission.max_crashes,
        "delay": admission.delay,
        "deadline": admission.deadline,
        "read_only": admission.read_only,
        "tags": Jsonb(dict(admission.tags or {})),
        "trace_parent": admission.trace_parent,
    }
    row = _one(conn, Q.admit, params)
    if row["admitted"]:
        return True
    if row["agent"] is None:
        # Another caller's row, committed after this statement's snapshot was taken.
        row = _one(conn, Q.admitted_before, params)
    if row["agent"] != admission.agent:
        raise RunConflict(admission.run_id, "agent")
    if not row["same"]:
        raise RunConflict(admission.run_id, "input")
    return False


def rung(conn: Conn, run_ids: Sequence[str]) -> None:
    """The doorbells of these runs are in the broker."""
    conn.execute(Q.rung, {"run_ids": list(run_ids)})


def agents_of(conn: Conn, run_ids: Sequence[str]) -> dict[str, str]:
    """The agent of each of these runs."""
    if not run_ids:
        return {}
    rows = conn.execute(Q.agents_of, {"run_ids": list(run_ids)}).fetchall()
    return {row["run_id"]: row["agent"] for row in rows}


def get_run(conn: AnyConn, run_id: str) -> Run:
    """The run, or `RunNotFound`."""
    row = conn.execute(Q.get, {"run_id": sought(run_id)}).fetchone()
    if row is None:
        raise RunNotFound(run_id)
    return Run.from_row(row)


def list_runs(
    conn: Conn, *, status: str | None = None, agent: str | None = None, limit: int = 100
) -> list[Run]:
    """The newest runs first."""
    params = {"status": sought_if(status), "agent": sought_if(agent), "limit": limit}
    rows = conn.execute(Q.list, params).fetchall()
    return [Run.from_row(row) for row in rows]


@dataclass(frozen=True)
class Event:
    """One row of `run_events`: what happened, in order of `seq`."""

    seq: int
    at: datetime
    epoch: int | None
    kind: str
    data: Mapping[str, Any]


def events(conn: Conn, run_id: str, *, after: int = 0, limit: int = 10_000) -> list[Event]:
    """Everything that happened to the run after event `after`, oldest first."""
    rows = conn.execute(Q.events, {"run_id": run_id, "after": after, "limit": limit}).fetchall()
    return [Event(**row) for row in rows]


def news(conn: Conn, run_id: str, *, after: int, limit: int) -> tuple[str, list[Event]]:
    """The run's status, and its events after `after`; `RunNotFound`.

    The status is read first: when it says that the run has ended, the events of that end are all there.
    """
    row = conn.execute(Q.standing, {"run_id": sought(run_id)}).fetchone()
    if row is None:
        raise RunNotFound(run_id)
    return row["status"], events(conn, run_id, after=after, limit=limit)


def record_event(conn: Conn, run_id: str, kind: str, data: Mapping[str, Any]) -> None:
    """Append one event that belongs to no transition."""
    conn.execute(Q.record_event, {"run_id": run_id, "kind": kind, "data": json.dumps(data)})


def cancel(conn: AnyConn, run_id: str, reason: str) -> str:
    """Any unfinished status -> cancelled, at once or by the running owner at its next step.

    Returns the status after the request: "cancelled", or "running" while the owner is still at it.
    """
    params = {"run_id": sought(run_id), "reason": check_note(reason, path="reason")}
    if conn.execute(Q.cancel_resting, params).fetchone():
        return "cancelled"
    if conn.execute(Q.request_cancel, params).fetchone() is None:
        raise RunMoved(run_id, "cancel", get_run(conn, run_id).status)
    # It may have come to rest between the two statements; the request is on record now, so either this
    # finds it at rest or the settle that is under way finds the request.
    return "cancelled" if conn.execute(Q.cancel_resting, params).fetchone() else "running"


def pause(conn: AnyConn, run_id: str, reason: str) -> str:
    """ready | waiting -> paused, at once; running -> paused by the owner at its next step.

    Returns the status after the request: "paused", or "running".  Decisions made meanwhile are kept.
    """
    params = {"run_id": sought(run_id), "reason": check_note(reason, path="reason")}
    if conn.execute(Q.pause_resting, params).fetchone():
        return "paused"
    asked = conn.execute(Q.request_pause, params).fetchone() is not None
    # As in `cancel`: it may have come to rest between the statements.
    if conn.execute(Q.pause_resting, params).fetchone():
        return "paused"
    run = get_run(conn, run_id)
    if asked and run.status in ("running", "paused"):
        return run.status
    raise RunMoved(run_id, "pause", run.status)


def make_ready(conn: AnyConn, run_id: str, verb: str, by: str | None = None) -> str:
    """failed -> ready (retry), quarantined -> ready (release), paused -> ready (resume).

    Returns the status after it: "ready", or for a pause that was asked for and taken back in time the
    one the run has ("running").
    """
    origins, event = {
        "retry": (["failed"], "retried"),
        "release": (["quarantined"], "released"),
        "resume": (["paused"], "resumed"),
    }[verb]
    params = {"run_id": sought(run_id), "from_statuses": origins, "event": event, "by": check_person(by)}
    if conn.execute(Q.make_ready, params).fetchone():
        return "ready"
    # Its owner may pause it between these two statements; then the third finds it paused.
    if verb == "resume" and conn.execute(Q.withdraw_pause, params).fetchone():
        return get_run(conn, run_id).status
    if verb == "resume" and conn.execute(Q.make_ready, params).fetchone():
        return "ready"
    raise RunMoved(run_id, verb, get_run(conn, run_id).status)


def _one(conn: AnyConn, query: bytes, params: Mapping[str, Any]) -> Mapping[str, Any]:
    row = conn.execute(query, params).fetchone()
    assert row is not None
    return row
