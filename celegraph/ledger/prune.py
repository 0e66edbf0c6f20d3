"""Retention: what ended runs no longer need goes, oldest first, in small transactions.

Running, waiting, sleeping, paused and quarantined runs are not looked at.  What is never removed: the run
itself (its run_id must not start anew), its effects (they answer late webhooks and decisions), its questions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta

from celegraph.config import Config
from celegraph.ledger.connect import Conn
from celegraph.ledger.queries import load
from celegraph.ledger.sweep import record_tick

Q = load("prune")

# Rows per transaction and table: a few megabytes of log at most, and nobody waits long for a row.
_ROWS = 2_000


@dataclass
class PruneReport:
    """What one prune removed.  `more`: it stopped at its limit, the next one goes on."""

    runs: int = 0
    checkpoints: int = 0
    writes: int = 0
    blobs: int = 0
    reads: int = 0
    events: int = 0
    more: bool = False

    def counts(self) -> dict[str, int]:
        """The numbers alone, for logs and the tick."""
        return {name: int(value) for name, value in asdict(self).items()}


def prune_once(
    conn: Conn,
    *,
    checkpoints: timedelta | None,
    events: timedelta | None,
    limit: int = 1000,
    rows: int = _ROWS,
) -> PruneReport:
    """Remove what ended runs have outlived: at most `limit` transactions of at most `rows` rows a table.

    `checkpoints`, `events`: how long to keep them after a run's end; None keeps them for ever.  Safe to run
    many times at once, and to be killed at any moment.
    """
    report = PruneReport()
    left = limit
    if checkpoints is not None:
        left = _until_done(conn, left, report, lambda: _prune_checkpoints(conn, checkpoints, rows, report))
    if events is not None:
        left = _until_done(conn, left, report, lambda: _prune_events(conn, events, rows, report))
    record_tick(conn, "prune", report.counts())
    return report


def prune_configured(conn: Conn, config: Config, *, limit: int = 5000) -> PruneReport:
    """As configured: `retention` and `event_retention`."""
    return prune_once(conn, checkpoints=config.retention, events=config.event_retention, limit=limit)


def _until_done(conn: Conn, left: int, report: PruneReport, step: Callable[[], bool]) -> int:
    while left > 0:
        with conn.transaction():
            if not step():
                return left
        left -= 1
    report.more = True
    return 0


def _prune_checkpoints(conn: Conn, keep: timedelta, rows: int, report: PruneReport) -> bool:
    """One transaction's work; False: no run is due."""
    due = conn.execute(Q.due_checkpoints, {"keep": keep}).fetchone()
    if due is None:
        return False
    # A failed run may be retried, and then it goes on from its newest checkpoints and their writes.
    params = {"run_id": due["run_id"], "resumable": due["status"] == "failed", "rows": rows}
    removed = {"checkpoints": 0, "writes": 0, "blobs": 0, "reads": 0}
    delta = conn.execute(Q.is_delta, params).fetchone()
    if delta is not None and not delta["delta"]:
        removed["checkpoints"] = conn.execute(Q.drop_checkpoints, params).rowcount
        removed["writes"] = conn.execute(Q.drop_writes, params).rowcount
        removed["blobs"] = conn.execute(Q.drop_blobs, params).rowcount
    removed["reads"] = conn.execute(Q.drop_reads, params).rowcount
    for name, count in removed.items():
        setattr(report, name, getattr(report, name) + count)
    if max(removed.values()) < rows:
        conn.execute(Q.checkpoints_pruned, params)
        report.runs += 1
    return True


def _prune_events(conn: Conn, keep: timedelta, rows: int, report: PruneReport) -> bool:
    due = conn.execute(Q.due_events, {"keep": keep}).fetchone()
    if due is None:
        return False
    params = {"run_id": due["run_id"], "rows": rows}
    removed = conn.execute(Q.drop_events, params).rowcount
    report.events += removed
    if removed < rows:
        conn.execute(Q.events_pruned, params)
    return True
