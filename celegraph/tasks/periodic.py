"""The duties on beat: plain functions with a report, plus what Celery needs to call them."""

from __future__ import annotations

import contextlib
import logging

from celegraph.errors import RunMoved
from celegraph.ledger import approvals, runs
from celegraph.ledger.approvals import Moved
from celegraph.ledger.connect import Conn
from celegraph.ledger.pool import ledger
from celegraph.ledger.prune import PruneReport, prune_configured
from celegraph.ledger.sweep import SweepReport, record_tick, sweep_once, unring, wake
from celegraph.tasks.installation import Installation
from celegraph.tasks.ring import depth, ring, ring_ready

logger = logging.getLogger("celegraph")


def sweep(inst: Installation, *, started: bool = False) -> SweepReport:
    """One sweep and its doorbells.  What the broker does not take is due again at the next sweep."""
    with ledger(inst.config) as conn:
        report = sweep_once(conn, inst.config, started=started, queued=lambda: depth(inst))
    missed = ring(inst, report.ring, "found by the sweep")
    if missed:
        with ledger(inst.config) as conn:
            unring(conn, missed)
    if report.recovered or report.terminated:
        logger.warning("sweep recovered runs", extra=report.counts())
    return report


def escalate(inst: Installation) -> dict[str, int]:
    """Do what the policies of open questions say for this instant, and send what is to be told."""
    with ledger(inst.config) as conn:
        moved = approvals.move_due(conn)
        closed = [m for m in moved if m.closed]
        ready = []
        for question in closed:
            if question.silence == "cancel":
                # Already requested by the statement that expired it; this only makes it quick.
                _cancel_quietly(conn, question)
            elif wake(conn, question.run_id):
                ready.append(question.run_id)
        report = {"expired": len(closed), "escalated": len(moved) - len(closed), "woken": len(ready)}
        record_tick(conn, "escalate", report)
    ring_ready(inst, ready, "question expired")
    _tell(inst)
    return report


def _tell(inst: Installation) -> None:
    if inst.config.channels:
        # Here and not above: sending brings LangGraph with it, through the outbox.
        from celegraph.tasks.notices import tell_beside

        tell_beside(inst)


def prune(inst: Installation) -> PruneReport:
    """Remove what ended runs have outlived, as configured; the rest is the next hour's."""
    with ledger(inst.config) as conn:
        return prune_configured(conn, inst.config)


def _cancel_quietly(conn: Conn, question: Moved) -> None:
    # RunMoved: the run ended by itself meanwhile, which is what was wanted.
    with contextlib.suppress(RunMoved):
        runs.cancel(conn, question.run_id, f"approval {question.approval_id} expired")
