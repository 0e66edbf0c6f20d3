"""The lease: who may advance a run.  begin, settle and release write with the pen of the attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from psycopg.types.json import Jsonb

from celegraph.config import Config
from celegraph.errors import Fenced
from celegraph.ledger.connect import Conn
from celegraph.ledger.keys import lock_key
from celegraph.ledger.outcomes import (
    Ask,
    Cancelled,
    Drained,
    Failed,
    Finished,
    Sleeping,
    Waiting,
    deadline_of,
)
from celegraph.ledger.pen import Pen
from celegraph.ledger.queries import load
from celegraph.ledger.runs import Run

Q = load("leases")


async def try_lock(pen: Pen, run_id: str) -> bool:
    """Take the run's session lock on the pen, or say that somebody has it."""
    row = await pen.fetch_one(Q.try_lock, {"key": lock_key(run_id)})
    return row is not None and bool(row["locked"])


async def busy(pen: Pen, run_id: str) -> bool:
    """The run is running under an unexpired lease: its owner, or the sweep, will see to it."""
    row = await pen.fetch_one(Q.busy, {"run_id": run_id})
    return row is not None and row["status"] == "running" and bool(row["held"])


async def status(pen: Pen, run_id: str) -> str | None:
    """The run's status now; None: there is no such run."""
    row = await pen.fetch_one(Q.busy, {"run_id": run_id})
    return None if row is None else str(row["status"])


async def begin(pen: Pen, run_id: str, worker_id: str, config: Config) -> Run | None:
    """ready -> running under the lock, epoch + 1.  None: nothing is due (or there is no such run)."""
    row = await pen.fetch_one(Q.begin, {"run_id": run_id, "worker_id": worker_id, "lease": config.lease})
    return None if row is None else Run.from_row(row)


async def recover_under_lock(pen: Pen, run_id: str) -> str | None:
    """running -> ready | quarantined | cancelled, by a doorbell that got the lock of a run still called
    running; returns the new status.

    Holding the lock proves the owner gone, so its death is counted here, in the sweep's own statement.
    """
    row = await pen.fetch_one(load("runs").get, {"run_id": run_id})
    if row is None or row["status"] != "running":
        return None
    params = {"run_id": run_id, "epoch": row["epoch"], "cause": "crashed", "detail": None}
    found = await pen.fetch_one(Q.recover, params)
    return None if found is None else str(found["status"])


def recover(conn: Conn, run_id: str, epoch: int, cause: str, detail: str | None = None) -> str | None:
    """running -> ready | quarantined | cancelled, if `epoch` is still the newest; returns the new status.

    None: it moved.  `detail`: what a hung owner had stopped doing.
    """
    params = {"run_id": run_id, "epoch": epoch, "cause": cause, "detail": detail}
    row = conn.execute(Q.recover, params).fetchone()
    return None if row is None else str(row["status"])


@dataclass(frozen=True)
class Beat:
    """The heartbeat's answer: the epoch is still ours; `cancelled` and `pausing` ask the owner to stop."""

    cancelled: bool
    pausing: bool = False


def beat(
    conn: Conn,
    run_id: str,
    epoch: int,
    *,
    loop_age: timedelta,
    draining: bool,
    heartbeat_due: timedelta | None = None,
    progress: str | None = None,
) -> Beat | None:
    """Renew the lease.  None: the run has another owner.

    `heartbeat_due`: for how long the agent may go on in silence (None: it promised nothing);
    `progress`: what it said last, as JSON.
    """
    params = {
        "run_id": run_id,
        "epoch": epoch,
        "loop_age": loop_age,
        "draining": draining,
        "heartbeat_due": heartbeat_due,
        "progress": progress,
    }
    return _beat(conn.execute(Q.beat, params).fetchone())


def look(conn: Conn, run_id: str, epoch: int) -> Beat | None:
    """As `beat`, without renewing: a reading between two beats."""
    return _beat(conn.execute(Q.look, {"run_id": run_id, "epoch": epoch}).fetchone())


def _beat(row: Mapping[str, Any] | None) -> Beat | None:
    return None if row is None else Beat(bool(row["cancelled"]), bool(row["pausing"]))


Settleable = Finished | Waiting | Sleeping | Failed | Drained | Cancelled


@dataclass(frozen=True)
class Settled:
    """The run's status once everything that came in meanwhile is counted; `ring` if it is due again."""

    status: str
    ring: bool


async def settle(
    pen: Pen,
    run_id: str,
    epoch: int,
    outcome: Settleable,
    *,
    seen: Sequence[str] = (),
    fingerprint: str | None = None,
) -> Settled:
    """running -> what the outcome says; the epoch goes up, so this owner's right to write ends here.

    `seen` are the answers this attempt knew.  Looks again after its own commit: a decision that came
    in between makes the run ready at once, a pause holds it.  Raises `Fenced` when another owner has the run.
    """
    params = {
        "run_id": run_id,
        "epoch": epoch,
        "seen": list(seen),
        "fingerprint": fingerprint,
        **_columns(outcome),
    }
    row = await pen.fetch_one(Q.settle, params)
    if row is None:
        raise Fenced(run_id, epoch)
    status = str(row["status"])
    ring = isinstance(outcome, Drained)
    if isinstance(outcome, Waiting) and any(ask.kind == "doubt" for ask in outcome.asks):
        await pen.fetch(load("approvals").close_answered_doubts, {"run_id": run_id, "limit": 100})
    if status in ("waiting", "ready") and (again := await pen.fetch_one(Q.recheck, {"run_id": run_id})):
        status = str(again["status"])
        ring = status == "ready"
    return Settled(status, ring)


async def release(pen: Pen) -> None:
    """Drop every lock and the fence of the session; the pen can serve another attempt."""
    await pen.fetch(Q.unlock_all)


async def drop_fence(pen: Pen) -> None:
    """From now on the database refuses this session's checkpoints, although the lock is still held."""
    await pen.fetch(Q.drop_fence)


def _columns(outcome: Settleable) -> dict[str, Any]:
    """The one table of what an outcome writes."""
    columns: dict[str, Any] = {
        "status": "ready",
        "reason": None,
        "waits_for": None,
        "output": None,
        "error": None,
        "retried": 0,
        "sleep": None,
        "asks": Jsonb([]),
        "event": "drained",
    }
    match outcome:
        case Finished(output):
            columns |= {"status": "finished", "output": Jsonb(output), "event": "finished"}
        case Waiting(reason, asks, waits_for):
            columns |= {
                "status": "waiting",
                "reason": reason,
                "waits_for": waits_for,
                "asks": _asks(asks),
                "event": "waits",
            }
        case Sleeping(delay, reason, retried, error, asks):
            columns |= {
                "reason": reason,
                "sleep": delay,
                "retried": int(retried),
                "error": Jsonb(error) if error else None,
                "asks": _asks(asks),
                "event": "sleeps",
            }
        case Failed(reason, error):
            columns |= {
                "status": "failed",
                "reason": reason,
                "error": Jsonb(error),
                "event": "failed",
            }
        case Drained(reason):
            columns |= {"reason": reason}
        case Cancelled(reason):
            columns |= {"status": "cancelled", "reason": reason, "event": "cancelled"}
    return columns


def _asks(asks: Sequence[Ask]) -> Jsonb:
    return Jsonb([asdict(ask) | deadline_of(ask) for ask in asks])
