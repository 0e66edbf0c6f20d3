"""The duties on beat: plain functions with a report, plus what Celery needs to call them."""

from __future__ import annotations

import contextlib
import logging

from celegraph.errors import RunMoved
from celegraph.ledger import approvals, runs
from celegraph.ledger.approvals import Expired
from celegraph.ledger.connect import Conn, ledger
from celegraph.ledger.prune import PruneReport, prune_configured
from celegraph.ledger.sweep import SweepReport, record_tick, sweep_once, unring, wake
from celegraph.tasks.installation import Installation
from celegraph.tasks.ring import depth, ring, ring_ready

logger = logging.getLogger("celegraph")


def sweep(inst: Installation, *, started: bool = False) -> SweepReport:
    """One sweep and its doorbells.  What the broker does not take is due again at the next sweep."""
    with ledger(inst.config) as conn:
        report = sweep_once(conn, inst.config, started=started, queued=lambda: depth(inst))
    missed = ring(inst, report.ring)
    if missed:
        with ledger(inst.config) as conn:
            unring(conn, missed)
    if report.recovered or report.terminated:
        logger.warning("sweep recovered runs", extra=report.counts())
    return report


def escalate(inst: Installation) -> dict[str, int]:
    """Expire questions whose deadline has passed, and do what their policy says."""
    with ledger(inst.config) as conn:
        expired = approvals.expire_due(conn)
        ready = []
        for question in expired:
            if question.on_timeout == "cancel":
                # Already requested by the statement that expired it; this only makes it quick.
                _cancel_quietly(conn, question)
            elif wake(conn, question.run_id):
                ready.append(question.run_id)
        report = {"expired": len(expired), "woken": len(ready)}
        record_tick(conn, "escalate", report)
    ring_ready(inst, ready)
    return report


def prune(inst: Installation) -> PruneReport:
    """Remove what ended runs have outlived, as configured; the rest is the next hour's."""
    with ledger(inst.config) as conn:
        return prune_configured(conn, inst.config)


def _cancel_quietly(conn: Conn, question: Expired) -> None:
    # RunMoved: the run ended by itself meanwhile, which is what was wanted.
    with contextlib.suppress(RunMoved):
        runs.cancel(conn, question.run_id, f"approval {question.approval_id} expired")
