"""F37: a claim whose owner died is answered by its policy, not by "in progress" for hours."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from celegraph import EffectCall, Happened, NotHappened, effect
from celegraph.agent.declaration import Found
from celegraph.config import Config
from celegraph.ledger.for_tests import pass_time
from celegraph.ledger.pool import ledger
from celegraph.testing.driver import Driver
from tests.support.driving import sweep
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain
from tests.support.waiting import eventually

LEASE = timedelta(seconds=60)
CASES = [
    (policy, acted, ends)
    for policy, ends in (("retry", "finished"), ("reconcile", "finished"), ("ask", "waiting"))
    for acted in (False, True)
]


@pytest.mark.parametrize(("policy", "acted", "ends"), CASES)
def test_after_two_leases_without_anybody_one_worker_ends_or_parks_it_in_two_ticks(
    lonely_drive: Driver, log: Log, policy: str, acted: bool, ends: str
) -> None:
    run_id = f"pending-{policy}-{acted}"
    graph = killed_at_its_first_call(log, policy, acted, lonely_drive)
    process_dies(lambda: lonely_drive(graph, {}, run_id=run_id))

    run = lonely_drive(graph, {}, run_id=run_id, sleeps=False)  # tick 1: it is found, perhaps not yet free
    eventually(lambda: run.status != "running" or run.resume().status != "running")
    sweep(run)
    run.resume()  # tick 2

    assert run.status == ends
    assert len({line for line in log.lines if line.startswith("act")}) == (
        1 if acted or ends == "finished" else 0
    )
    if ends == "waiting":
        assert [(a.kind, a.status) for a in run.approvals] == [("doubt", "open")]
    else:
        assert [a.status for a in run.effects] == ["sent"]


def killed_at_its_first_call(log: Log, policy: str, acted: bool, drive: Driver) -> Graph:
    def lookup(call: EffectCall) -> Found:
        return Happened("found") if f"act {call.key}" in log.lines else NotHappened()

    options: dict[str, Any] = {"in_doubt": policy}
    if policy == "reconcile":
        options["lookup"] = lookup

    @effect("pay", **options)
    def pay(call: EffectCall) -> str:
        first = call.attempt == 1
        if acted or not first:
            log(f"act {call.key}")
        if first:
            two_leases_pass(drive, call.run_id)
            die()
        return "receipt"

    def node(state: State) -> State:
        return {"seen": [pay()]}

    return chain(node)


def two_leases_pass(drive: Driver, run_id: str) -> None:
    """By the run's own clock, before its process is gone: nobody looks meanwhile."""
    where = drive.ledger
    config = Config.model_validate({"database_url": where.database_url, "schema": where.schema})
    with ledger(config) as conn:
        pass_time(conn, run_id, 2 * LEASE)
