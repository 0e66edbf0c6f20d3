"""The sweep: the guarantee that every run moves.  Bounded, and safe to run many times at once.

Everything that rings a run faster (the caller, settle, decide) may die or be lost; what is due is due
because of rows, and this finds the rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from psycopg import errors as pg

from celegraph.config import Config
from celegraph.ledger import runs
from celegraph.ledger.connect import Conn
from celegraph.ledger.leases import recover
from celegraph.ledger.queries import load

Q = load("sweep")

# How an owner that holds its lock is known to hang, and how that is told.
_HANGS = {
    "beatless": "its process did not beat for a lease",
    "loopless": "its event loop was not seen for hang_after",
    "silent": "its agent's heartbeat was overdue",
}


@dataclass
class SweepReport:
    """What one sweep did, and whom to ring."""

    recovered: list[str] = field(default_factory=list)
    terminated: list[str] = field(default_factory=list)
    woken: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    ring: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """The numbers alone, for logs and the tick."""
        return {name: len(values) for name, values in asdict(self).items()}


def sweep_once(
    conn: Conn,
    config: Config,
    *,
    limit: int = 500,
    started: bool = False,
    queued: Callable[[], int | None] = lambda: None,
) -> SweepReport:
    """Recover runs whose owner is gone, wake runs with an answer, and name the runs to ring.

    `started`: a worker has just come up, so runs waiting for other code get another look.
    `queued`: how many messages lie in the queue (None: unknown); asked only when one seems lost.
    """
    report = SweepReport()
    _recover_dead(conn, config, limit, report)
    for row in conn.execute(Q.orphan_locks, {"lease": config.lease}).fetchall():
        _terminate(conn, row["run_id"], row["lock_key"], row["pid"], report)
    conn.execute(load("approvals").close_answered_doubts, {"run_id": None, "limit": limit})
    conn.execute(Q.consume_ended, {"limit": limit})
    report.woken += _ids(conn.execute(Q.wake_decided, {"limit": limit}).fetchall())
    if started:
        report.woken += _ids(conn.execute(Q.wake_for_code, {"limit": limit}).fetchall())
    conn.execute(Q.past_deadline, {"limit": limit})
    for row in conn.execute(Q.cancelling, {"limit": limit}).fetchall():
        if conn.execute(load("runs").cancel_resting, row).fetchone():
            report.cancelled.append(row["run_id"])
    conn.execute(Q.pause_requested, {"limit": limit})
    # Booked last, so that what was just made ready is rung by this very sweep.
    report.ring = _ids(conn.execute(Q.due_rings, {"limit": limit}).fetchall())
    report.ring += _unanswered(conn, limit, queued)
    record_tick(conn, "sweep", report.counts())
    return report


def _recover_dead(conn: Conn, config: Config, limit: int, report: SweepReport) -> None:
    page: dict[str, object] = {"hang_after": config.hang_after, "limit": limit}
    after: dict[str, object] = {"after_at": None, "after_id": None}
    while candidates := conn.execute(Q.running, page | after).fetchall():
        _recover_page(conn, candidates, report)
        if len(candidates) < limit:
            return
        after = {"after_at": candidates[-1]["updated_at"], "after_id": candidates[-1]["run_id"]}


def _recover_page(conn: Conn, candidates: Sequence[Mapping[str, Any]], report: SweepReport) -> None:
    # The order of these two reads is the proof: running first, locks second.
    holders: dict[int, int] = {r["lock_key"]: r["pid"] for r in conn.execute(Q.locks).fetchall()}
    for run in candidates:
        holder = holders.get(run["lock_key"])
        detail = next((said for sign, said in _HANGS.items() if run[sign]), None)
        if holder is None:
            cause = "crashed"
        elif detail is not None:
            # Fence first: when the epoch has moved, the terminated owner can do no harm on its way out.
            cause = "hung"
        else:
            continue
        if not _recovered(conn, run["run_id"], run["epoch"], cause, detail):
            continue
        report.recovered.append(run["run_id"])
        if holder is not None:
            _terminate(conn, run["run_id"], run["lock_key"], holder, report)


def _recovered(conn: Conn, run_id: str, epoch: int, cause: str, detail: str | None) -> bool:
    # For the session and not in a transaction: a sweep that is frozen must not hold the run itself.
    conn.execute(Q.wait_briefly)
    try:
        return recover(conn, run_id, epoch, cause, detail) is not None
    except pg.LockNotAvailable:
        return False  # somebody is at this very run; the next sweep looks again, and the others' turn is now
    finally:
        if not conn.closed:
            conn.execute(Q.wait_as_before)


def _unanswered(conn: Conn, limit: int, queued: Callable[[], int | None]) -> list[str]:
    """Runs that were rung and have not begun, to be rung again.

    Fewer messages in the queue than such runs: so many are lost (they died with a worker, or with the
    broker's memory).  Otherwise once a minute, while the queue holds less than two messages for each.
    """
    waiting = conn.execute(Q.unanswered, {"limit": limit}).fetchone()
    if waiting is None or not waiting["overdue"]:
        return []
    depth, rung = queued(), int(waiting["rung"])
    again: list[str] = []
    if depth is not None and depth < rung:
        again = _ids(conn.execute(Q.lost_rings, {"limit": rung - depth}).fetchall())
    # An unknown depth is a broker that takes nothing just now.
    room = limit if depth is None else max(0, 2 * rung - 1 - depth - len(again))
    return again + _ids(conn.execute(Q.due_again, {"limit": limit, "room": room}).fetchall())


def _terminate(conn: Conn, run_id: str, lock_key: int, pid: int, report: SweepReport) -> None:
    if conn.execute(Q.terminate, {"pid": pid, "lock_key": lock_key}).fetchone():
        report.terminated.append(run_id)
        runs.record_event(conn, run_id, "fenced", {"backend_pid": pid})


def unring(conn: Conn, run_ids: Iterable[str]) -> None:
    """The broker did not take these doorbells."""
    conn.execute(Q.unring, {"run_ids": list(run_ids)})


@dataclass(frozen=True)
class Tick:
    """When a periodic duty last ran, by the database's clock."""

    age_s: float
    report: dict[str, int]


def last_tick(conn: Conn, name: str) -> Tick | None:
    """None when the duty has never run here."""
    row = conn.execute(Q.last_tick, {"name": name}).fetchone()
    return None if row is None else Tick(row["age_s"], row["report"])


def record_tick(conn: Conn, name: str, report: dict[str, int]) -> None:
    """A periodic duty has run."""
    conn.execute(Q.tick, {"name": name, "report": json.dumps(report)})


def wake(conn: Conn, run_id: str) -> bool:
    """waiting -> ready for a decision committed before this statement.  False: nothing to do."""
    return conn.execute(Q.wake_one, {"run_id": run_id}).fetchone() is not None


def _ids(rows: Iterable[dict[str, object]]) -> list[str]:
    return [str(row["run_id"]) for row in rows]
