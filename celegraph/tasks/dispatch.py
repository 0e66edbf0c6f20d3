"""The outbox's and the doubts' duties on beat, run on a worker slot: they call the host's functions."""

from __future__ import annotations

import logging

from celegraph.agent.dispatch import DispatchReport, dispatch_once
from celegraph.agent.reconcile import ReconcileReport, reconcile_once
from celegraph.ledger.db_errors import in_log
from celegraph.ledger.pool import ledger
from celegraph.ledger.sweep import record_tick, wake
from celegraph.tasks.installation import Installation
from celegraph.tasks.ring import ring_ready
from celegraph.tasks.slot import Slot, current_slot

logger = logging.getLogger("celegraph")


def dispatch(inst: Installation) -> DispatchReport:
    """Perform released intents, bounded; the rest is the next tick's."""
    _load_agents(inst)
    slot = current_slot(inst.config)

    async def work(slot: Slot) -> DispatchReport:
        return await dispatch_once(await slot.ready_pen(), inst.config, inst.policy_for)

    report = slot.run(work(slot))
    _note(inst, "dispatch", report.counts())
    return report


def reconcile(inst: Installation) -> ReconcileReport:
    """Ask providers about calls in doubt whose runs rest, people about those of ended runs; never calls."""
    _load_agents(inst)
    slot = current_slot(inst.config)

    async def work(slot: Slot) -> ReconcileReport:
        return await reconcile_once(await slot.ready_pen(), inst.config, inst.policy_for)

    report = slot.run(work(slot))
    with ledger(inst.config) as conn:
        ready = [run_id for run_id in dict.fromkeys(report.woken) if wake(conn, run_id)]
    ring_ready(inst, ready, "found by a look-up")
    _note(inst, "reconcile", report.counts())
    return report


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
