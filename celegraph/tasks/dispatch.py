"""The outbox's and the doubts' duties on beat, run on a worker slot: they call the host's functions."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from celegraph.agent.dispatch import DispatchReport, dispatch_once
from celegraph.agent.reconcile import ReconcileReport, reconcile_once
from celegraph.ledger import leases
from celegraph.ledger.db_errors import in_log
from celegraph.ledger.pen import Pen
from celegraph.ledger.pool import ledger
from celegraph.ledger.sweep import record_tick, wake
from celegraph.tasks import drain, turns
from celegraph.tasks.installation import Installation
from celegraph.tasks.ring import ring_ready
from celegraph.tasks.slot import current_slot

logger = logging.getLogger("celegraph")

T = TypeVar("T")

# Seconds after which a tick begins no more calls: the next one, or another worker, goes on.
_LONGEST = 10.0


def dispatch(inst: Installation) -> DispatchReport:
    """Perform released intents, bounded; the rest is the next tick's, and all when this worker has no turn
    to give."""
    until = time.monotonic() + _LONGEST

    def enough() -> bool:
        return drain.requested() or time.monotonic() > until

    report = _in_turn(inst, lambda pen: dispatch_once(pen, inst.config, inst.policy_for, enough=enough))
    if report is None:
        return DispatchReport()
    _note(inst, "dispatch", report.counts())
    return report


def reconcile(inst: Installation) -> ReconcileReport:
    """Ask providers about calls in doubt whose runs rest, people about those of ended runs; never calls.

    All is the next tick's when this worker has no turn to give.
    """
    report = _in_turn(inst, lambda pen: reconcile_once(pen, inst.config, inst.policy_for))
    if report is None:
        return ReconcileReport()
    with ledger(inst.config) as conn:
        ready = [run_id for run_id in dict.fromkeys(report.woken) if wake(conn, run_id)]
    ring_ready(inst, ready, "found by a look-up")
    _note(inst, "reconcile", report.counts())
    return report


def _in_turn(inst: Installation, duty: Callable[[Pen], Awaitable[T]]) -> T | None:
    _load_agents(inst)
    slot = current_slot(inst.config)

    async def work() -> T | None:
        pen = await slot.ready_pen()
        if not await turns.take(pen):
            return None
        done = await duty(pen)
        await leases.release(pen)
        return done

    return slot.run(work())


def _load_agents(inst: Installation) -> None:
    # The effects are declared by the agents' modules; a slot that never ran one has not imported them.
    for name in inst.agents:
        try:
            inst.graph(name)
        except Exception as error:
            # Its own runs say so; the effects of the others must not wait for it.
            logger.error("agent unusable here", extra={"agent": name, "error": in_log(error)})


def _note(inst: Installation, name: str, counts: dict[str, int]) -> None:
    with ledger(inst.config) as conn:
        record_tick(conn, name, counts)
