"""What a slot keeps, and that it goes with it."""

from __future__ import annotations

import asyncio
import threading

import psycopg
import pytest

from celegraph.ledger.connect import pen_name
from celegraph.ledger.pool import close_pools
from celegraph.tasks import hooks
from celegraph.tasks.slot import NodeExecutor, close_current
from celegraph.testing.database import Ledger
from celegraph.testing.driver import Driver
from tests.support.shapes import State, chain
from tests.support.waiting import eventually


def _hearts() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "celegraph-heart"}


def _sessions(url: str) -> list[str]:
    with psycopg.connect(url) as conn:
        rows = conn.execute(
            "SELECT application_name FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'celegraph%'"
        )
        return [name for (name,) in rows]


def test_a_closed_slot_leaves_no_thread_and_no_connection(database_url: str) -> None:
    before = _hearts()

    async def look(state: State) -> State:
        await asyncio.to_thread(eventually, lambda: "celegraph heart" in _sessions(database_url))
        return {"seen": sorted(set(_sessions(database_url)))}

    run = Driver(Ledger(database_url, "celegraph"))(chain(look), {})
    assert {"celegraph heart", pen_name("celegraph")} <= set(run.output["seen"])
    close_current()
    close_pools()

    assert _hearts() <= before
    eventually(lambda: not _sessions(database_url))


def test_hooks_are_called_around_a_node_in_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []

    def note(what: str) -> None:
        seen.append((what, threading.current_thread().name))

    monkeypatch.setattr(hooks, "around_node", [lambda: note("hook"), lambda: 1 / 0])

    with NodeExecutor(1) as executor:
        executor.submit(note, "node").result()

    assert [what for what, _ in seen] == ["hook", "node", "hook"]
    assert {name for _, name in seen} == {"celegraph-node_0"}


def test_jobs_one_after_the_other_use_one_thread() -> None:
    with NodeExecutor(64) as executor:
        threads = {executor.submit(threading.get_ident).result() for _ in range(5000)}

    assert len(threads) == 1


def test_jobs_side_by_side_have_a_thread_each_also_after_many_single_ones() -> None:
    with NodeExecutor(64) as executor:
        for _ in range(1000):
            executor.submit(threading.get_ident).result()
        together = threading.Barrier(16, timeout=30)

        for _ in range(20):
            jobs = [executor.submit(together.wait) for _ in range(16)]
            assert sorted(job.result() for job in jobs) == list(range(16))


def test_more_jobs_than_threads_wait_for_their_turn() -> None:
    with NodeExecutor(2) as executor:
        jobs = [executor.submit(lambda n: n, n) for n in range(500)]

        assert [job.result() for job in jobs] == list(range(500))
