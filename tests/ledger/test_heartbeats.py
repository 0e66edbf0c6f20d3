"""An agent's own heartbeat in the lease: who promised it, and what its silence costs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from celegraph.config import Config
from celegraph.ledger import leases, runs
from celegraph.ledger.connect import Conn
from celegraph.ledger.outcomes import Drained
from celegraph.ledger.pen import Pen
from celegraph.ledger.runs import Admission
from celegraph.ledger.sweep import sweep_once
from tests.ledger.test_fence import begin
from tests.support.pens import with_pen

Admit = Callable[[str], str]
_LATE = timedelta(seconds=-1)


def _beat(conn: Conn, run_id: str, epoch: int, due: timedelta | None, progress: str | None = None) -> None:
    answer = leases.beat(
        conn,
        run_id,
        epoch,
        loop_age=timedelta(0),
        draining=False,
        heartbeat_due=due,
        progress=progress,
    )
    assert answer is not None


def test_an_overdue_heartbeat_is_a_hang_and_its_last_word_is_in_the_event(
    config: Config, conn: Conn, admit: Admit
) -> None:
    async def scenario(pen: Pen) -> None:
        epoch = await begin(pen, admit("run-1"), config)
        _beat(conn, "run-1", epoch, timedelta(minutes=1), '{"page": 3}')
        assert sweep_once(conn, config).recovered == []
        _beat(conn, "run-1", epoch, _LATE)
        report = sweep_once(conn, config)
        assert (report.recovered, report.terminated) == (["run-1"], ["run-1"])

    with_pen(config, scenario)
    run = runs.get_run(conn, "run-1")
    assert (run.status, run.hang_count, run.crash_count) == ("ready", 1, 0)
    (hung,) = [event.data for event in runs.events(conn, "run-1") if event.kind == "hung"]
    assert (hung["reason"], hung["progress"]) == ("its agent's heartbeat was overdue", {"page": 3})


@pytest.mark.parametrize("due", [None, timedelta(hours=1)], ids=["no promise", "in time"])
def test_an_agent_that_owes_nothing_yet_keeps_its_run(
    config: Config, conn: Conn, admit: Admit, due: timedelta | None
) -> None:
    async def scenario(pen: Pen) -> None:
        epoch = await begin(pen, admit("run-1"), config)
        _beat(conn, "run-1", epoch, due)
        assert sweep_once(conn, config).recovered == []

    with_pen(config, scenario)


def test_a_promise_binds_only_the_owner_that_gave_it(config: Config, conn: Conn, admit: Admit) -> None:
    """Also when the next owner is an older worker, which does not know the columns and leaves them."""

    async def scenario(pen: Pen) -> None:
        epoch = await begin(pen, admit("run-1"), config)
        _beat(conn, "run-1", epoch, _LATE, '"half"')
        await leases.settle(pen, "run-1", epoch, Drained("worker drains"))
        await begin(pen, "run-1", config)
        run = runs.get_run(conn, "run-1")
        assert run.progress is None
        conn.execute("UPDATE run_leases SET heartbeat_due_at = ledger_now() - interval '1 hour'")
        assert sweep_once(conn, config).recovered == []

    with_pen(config, scenario)


def test_a_pause_that_an_older_workers_settle_passed_over_is_taken_in_by_the_sweep(
    config: Config, conn: Conn
) -> None:
    for run_id in ("run-1", "run-2"):
        runs.admit(conn, Admission(run_id, "agent", {}, max_crashes=3))
    conn.execute("UPDATE runs SET pause_requested_at = ledger_now(), pause_reason = 'audit'")
    conn.execute("UPDATE runs SET cancel_requested_at = ledger_now() WHERE run_id = 'run-2'")

    report = sweep_once(conn, config)

    assert report.ring == []
    assert [runs.get_run(conn, r).status for r in ("run-1", "run-2")] == ["paused", "cancelled"]
    assert runs.get_run(conn, "run-1").reason == "audit"
