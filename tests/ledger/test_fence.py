"""The database refuses a stale owner, an outsider, and a death counted twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from celegraph.config import Config
from celegraph.errors import Fenced, RunConflict, RunMoved, RunNotFound
from celegraph.ledger import effects, leases, runs
from celegraph.ledger.connect import Conn, connect
from celegraph.ledger.effect_row import Reservation
from celegraph.ledger.outcomes import Finished, Waiting
from celegraph.ledger.pen import Pen
from celegraph.ledger.runs import Admission
from celegraph.ledger.sweep import sweep_once
from tests.support.pens import with_pen
from tests.support.waiting import eventually

Admit = Callable[[str], str]


async def begin(pen: Pen, run_id: str, config: Config) -> int:
    assert await leases.try_lock(pen, run_id)
    run = await leases.begin(pen, run_id, "worker", config)
    assert run is not None
    return run.epoch


CHECKPOINT = b"""
INSERT INTO checkpoints (thread_id, checkpoint_id, checkpoint, metadata)
VALUES (%(run_id)s, %(id)s, '{}', '{"step": 1}')
"""
WRITE = b"""
INSERT INTO checkpoint_writes (thread_id, checkpoint_id, task_id, idx, channel, blob)
VALUES (%(run_id)s, %(id)s, 't', 0, 'c', '')
"""


@pytest.mark.parametrize("write", [CHECKPOINT, WRITE])
def test_the_owner_writes_and_a_stale_epoch_is_refused(
    config: Config, conn: Conn, admit: Admit, write: bytes
) -> None:
    async def scenario(pen: Pen) -> None:
        epoch = await begin(pen, admit("run-1"), config)
        await pen.fetch(write, {"run_id": "run-1", "id": "1"})

        assert leases.recover(conn, "run-1", epoch, "crashed") is not None
        with pytest.raises(psycopg.Error) as refused:
            await pen.fetch(write, {"run_id": "run-1", "id": "2"})
        assert refused.value.sqlstate == "CG001"

    with_pen(config, scenario)


@pytest.mark.parametrize("write", [CHECKPOINT, WRITE])
def test_an_outsider_is_refused_and_a_thread_that_is_no_run_passes(
    conn: Conn, admit: Admit, write: bytes
) -> None:
    admit("run-1")

    with pytest.raises(psycopg.Error, match="outsider"):
        conn.execute(write, {"run_id": "run-1", "id": "1"})
    conn.execute(write, {"run_id": "no-run", "id": "1"})


def test_after_the_settle_the_owner_may_write_no_more(config: Config, conn: Conn, admit: Admit) -> None:
    async def scenario(pen: Pen) -> None:
        epoch = await begin(pen, admit("run-1"), config)
        await leases.settle(pen, "run-1", epoch, Finished({}))

        with pytest.raises(psycopg.Error, match="stale owner"):
            await pen.fetch(CHECKPOINT, {"run_id": "run-1", "id": "1"})
        with pytest.raises(Fenced):
            await leases.settle(pen, "run-1", epoch, Finished({}))
        with pytest.raises(Fenced):
            await effects.reserve(pen, reservation("run-1", epoch), approved=False)

    with_pen(config, scenario)
    assert runs.get_run(conn, "run-1").status == "finished"


def reservation(run_id: str, epoch: int) -> Reservation:
    from datetime import timedelta

    return Reservation(
        key="cg-1",
        run_id=run_id,
        epoch=epoch,
        step="node@1",
        tool="pay",
        slot="#1",
        args_hash="h",
        args={},
        owner="me",
        horizon=timedelta(seconds=65),
    )


def test_a_new_epoch_waits_for_a_write_in_flight(config: Config, conn: Conn, admit: Admit) -> None:
    async def scenario(pen: Pen) -> None:
        epoch = await begin(pen, admit("run-1"), config)
        done: list[object] = []

        def take_over() -> None:
            with connect(config) as other:
                done.append(leases.recover(other, "run-1", epoch, "crashed"))

        thread = threading.Thread(target=take_over)
        async with pen.conn.transaction():
            await pen.conn.execute(WRITE, {"run_id": "run-1", "id": "1"})
            thread.start()
            await asyncio.to_thread(eventually, lambda: waiting_for_a_lock(conn))
            assert done == []
        await asyncio.to_thread(thread.join, 5)

        assert len(done) == 1
        assert done[0] is not None

    with_pen(config, scenario)


def waiting_for_a_lock(conn: Conn) -> bool:
    row = conn.execute(
        "SELECT count(*) AS n FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    ).fetchone()
    return row is not None and bool(row["n"])


def test_eight_sweeps_at_once_count_a_death_once(config: Config, conn: Conn, admit: Admit) -> None:
    for n in range(20):
        with_pen(config, lambda pen, n=n: begin(pen, admit(f"run-{n}"), config))  # type: ignore[misc]

    barrier = threading.Barrier(8)

    def sweep(_: int) -> list[str]:
        with connect(config) as mine:
            barrier.wait()
            return sweep_once(mine, config).recovered

    with ThreadPoolExecutor(8) as pool:
        recovered = [run_id for report in pool.map(sweep, range(8)) for run_id in report]

    assert sorted(recovered) == sorted(f"run-{n}" for n in range(20))
    assert {(r.crash_count, r.status, r.epoch) for r in runs.list_runs(conn)} == {(1, "ready", 2)}


def test_changes_that_come_too_late_are_named(config: Config, conn: Conn, admit: Admit) -> None:
    admit("run-1")

    for verb in ("retry", "release", "resume"):
        with pytest.raises(RunMoved, match=f"cannot {verb} run 'run-1': it is ready"):
            runs.make_ready(conn, "run-1", verb)
    assert runs.cancel(conn, "run-1", "no need") == "cancelled"
    with pytest.raises(RunMoved, match="it is cancelled"):
        runs.cancel(conn, "run-1", "again")
    with pytest.raises(RunMoved, match="it is cancelled"):
        runs.pause(conn, "run-1", "again")
    with pytest.raises(RunNotFound, match="celegraph runs"):
        runs.get_run(conn, "run-2")
    with pytest.raises(RunConflict, match="another input"):
        runs.admit(conn, Admission("run-1", "agent", {"n": 2}, max_crashes=3))
    with pytest.raises(RunConflict, match="another agent"):
        runs.admit(conn, Admission("run-1", "other", {"n": 1}, max_crashes=3))
    assert runs.admit(conn, Admission("run-1", "agent", {"n": 1}, max_crashes=3)) is False


def test_a_paused_run_keeps_decisions_and_goes_on_after_resume(
    config: Config, conn: Conn, admit: Admit
) -> None:
    async def scenario(pen: Pen) -> None:
        epoch = await begin(pen, admit("run-1"), config)
        await leases.settle(pen, "run-1", epoch, Waiting("waits for a decision"))

    with_pen(config, scenario)
    runs.pause(conn, "run-1", "holiday")
    assert runs.get_run(conn, "run-1").status == "paused"
    runs.make_ready(conn, "run-1", "resume", "anna")
    assert runs.get_run(conn, "run-1").status == "ready"
    assert [e.kind for e in runs.events(conn, "run-1")][-2:] == ["paused", "resumed"]


def test_a_live_owner_is_not_recovered_and_a_request_to_cancel_reaches_it(
    config: Config, conn: Conn, admit: Admit
) -> None:
    from datetime import timedelta

    async def scenario(pen: Pen) -> None:
        epoch = await begin(pen, admit("run-1"), config)
        with connect(config) as other:
            assert sweep_once(other, config).recovered == []
            assert runs.cancel(other, "run-1", "no need") == "running"
            answer = leases.beat(other, "run-1", epoch, loop_age=timedelta(0), draining=False)
        assert answer is not None
        assert answer.cancelled

    with_pen(config, scenario)
    eventually(lambda: sweep_once(conn, config).recovered)
    assert runs.get_run(conn, "run-1").status == "cancelled"


def test_a_run_that_is_cancelled_while_it_is_begun_gets_no_owner(
    config: Config, conn: Conn, admit: Admit
) -> None:
    admit("run-1")

    async def begin_beside_the_cancellation(pen: Pen) -> object:
        assert await leases.try_lock(pen, "run-1")
        return await leases.begin(pen, "run-1", "worker", config)

    with ThreadPoolExecutor(1) as threads:
        with conn.transaction():
            runs.cancel(conn, "run-1", "in the same moment")
            begun = threads.submit(with_pen, config, begin_beside_the_cancellation)
            waiting = (
                "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            with connect(config) as other:
                eventually(lambda: other.execute(waiting).fetchone() is not None)
        assert begun.result() is None
    run = runs.get_run(conn, "run-1")

    assert (run.status, run.epoch, run.worker_id) == ("cancelled", 0, None)
