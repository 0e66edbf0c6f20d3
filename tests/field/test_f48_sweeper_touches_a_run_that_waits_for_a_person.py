"""F48: the sweeper touches a run that waits for a person."""

from __future__ import annotations

from langgraph.types import interrupt

from celegraph.testing.driver import Driver
from tests.support.driving import connection, sweep
from tests.support.log import Log
from tests.support.shapes import State, chain


def test_twenty_sweeps_over_an_expired_lease_enter_no_node_and_keep_the_question(
    lonely_drive: Driver, log: Log
) -> None:
    def ask(state: State) -> State:
        log("ask")
        return {"seen": [interrupt("go?")]}

    run = lonely_drive(chain(ask), {})
    with connection(run) as conn:
        conn.execute(
            "UPDATE run_leases SET worker_id = 'ghost', backend_pid = 1, lease_for = '1 s',"
            " expires_at = ledger_now() - interval '1 day', loop_seen_at = ledger_now() - interval '1 day'"
        )
    before = run.run.updated_at

    for _ in range(20):
        sweep(run)
        run.resume()

    assert run.status == "waiting"
    assert run.run.updated_at == before
    assert log.lines == ["ask"]
    assert [a.status for a in run.approvals] == ["open"]
    assert run.resume(["approve"]).output["seen"] == [True]
