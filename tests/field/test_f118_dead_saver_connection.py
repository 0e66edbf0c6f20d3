"""F118: all our backends are terminated, during a node and between runs; then PostgreSQL restarts.

Seen elsewhere: after that every later call of the process says "the connection is closed".
"""

from __future__ import annotations

from pathlib import Path

import psycopg

from celegraph import start_run
from celegraph.dev.postgres import Postgres
from celegraph.ledger import runs
from celegraph.ledger.connect import connect
from tests.support.databases import end_our_backends
from tests.support.scene import Scene
from tests.support.waiting import eventually


# The test's own connection is called "test".
def terminate(url: str) -> int:
    """End every backend of ours; how many there were."""
    with psycopg.connect(url, autocommit=True) as conn:
        return end_our_backends(conn)


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
