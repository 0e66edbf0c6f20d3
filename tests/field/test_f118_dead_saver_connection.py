"""F118: all our backends are terminated, during a node and between runs; then PostgreSQL restarts.

Seen elsewhere: after that every later call of the process says "the connection is closed".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from celegraph import start_run
from celegraph.agent.migrate import migrate
from celegraph.dev.home import Home
from celegraph.dev.postgres import Postgres
from celegraph.ledger import runs
from celegraph.ledger.connect import connect
from tests.support.scene import Scene
from tests.support.waiting import eventually

# The test's own connection is called "test".
TERMINATE = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name LIKE 'celegraph%'"
)


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A database of this test's own, to restart."""
    with Postgres(Home.passing(in_memory=True), fsync=False) as server:
        migrate(server.url)
        yield server


def terminate(url: str) -> int:
    """End every backend of ours; how many there were."""
    with psycopg.connect(url, autocommit=True) as conn:
        row = conn.execute(TERMINATE).fetchone()
    assert row is not None
    return int(row[0])


def test_the_same_child_serves_the_next_run_and_pays_once(
    own_postgres: Postgres, broker_url: str, tmp_path: Path
) -> None:
    with Scene(own_postgres.url, broker_url, tmp_path) as scene:
        scene.control()
        worker = scene.worker("w", concurrency=1, queues=["celegraph"])
        (child,) = worker.children()
        scene.gates.close("pay:call")
        during = scene.begin("retried")
        scene.gates.await_arrival("pay:call", during)

        assert terminate(own_postgres.url) >= 2  # pen and heart
        scene.gates.open("pay:call")
        scene.await_status(during, "finished")

        assert terminate(own_postgres.url) >= 2
        between = scene.begin("retried")
        scene.await_status(between, "finished")

        own_postgres.restart()
        start_run.delay("retried", {"cents": 1}, run_id="afterwards")
        with connect(scene.config) as conn:
            eventually(lambda: runs.get_run(conn, "afterwards").status == "finished", within=30)

        assert worker.children() == [child]
        for run_id in (during, between, "afterwards"):
            assert len(scene.provider.acts_of(run_id)) == 1
