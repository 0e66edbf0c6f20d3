"""What beat has to do for celegraph, as a plain dict.  `install` adds it; nothing here is a crontab:
intervals know no summer time, and deadlines are instants in the database."""

from __future__ import annotations

from typing import Any

from celegraph.config import Config

SWEEP = "celegraph.sweep_leases"
ESCALATE = "celegraph.escalate_approvals"
DISPATCH = "celegraph.dispatch_outbox"
RECONCILE = "celegraph.reconcile_effects"
PRUNE = "celegraph.prune"
TICKS = frozenset({SWEEP, ESCALATE, DISPATCH, RECONCILE, PRUNE})

# Seconds.
ESCALATE_EVERY = 5.0
DISPATCH_EVERY = 2.0
RECONCILE_EVERY = 15.0
PRUNE_EVERY = 3600.0


def beat_schedule(config: Config) -> dict[str, dict[str, Any]]:
    """The entries for `conf.beat_schedule`.

    Each message expires within its interval: after an outage a worker meets one tick, not a thousand.
    """
    control, queue = config.control_queue, config.queue
    return {
        "celegraph-sweep-leases": _every(config.sweep_every.total_seconds(), SWEEP, control),
        "celegraph-escalate-approvals": _every(ESCALATE_EVERY, ESCALATE, control),
        # These call the host's functions, which may be slow: beside the runs, not beside the clock.
        "celegraph-dispatch-outbox": _every(DISPATCH_EVERY, DISPATCH, queue),
        "celegraph-reconcile-effects": _every(RECONCILE_EVERY, RECONCILE, queue),
        # Bounded, but it may take a minute: not beside the clock either.
        "celegraph-prune": _every(PRUNE_EVERY, PRUNE, queue),
    }


def _every(seconds: float, task: str, queue: str) -> dict[str, Any]:
    return {
        "task": task,
        "schedule": seconds,
        "options": {"expires": seconds, "queue": queue},
    }
