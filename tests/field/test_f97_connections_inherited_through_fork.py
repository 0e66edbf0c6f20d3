"""F97: connections inherited through fork."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.host import APP, VARIANT
from tests.support.pgbouncer import pgbouncer
from tests.support.scene import Scene

_BROKEN = ("decryption failed", "bad record mac", "lost synchronization", "Traceback", "ProtocolError")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("options", "processes"),
    [([], 2), (["--max-tasks-per-child", "1"], 20)],
    ids=["kept children", "a child for every task"],
)
def test_children_share_no_connection_with_a_parent_that_used_the_ledger(
    scene: Scene, options: list[str], processes: int
) -> None:
    hundred_runs(scene, options, processes)


def test_children_share_no_encrypted_connection_either(
    database_url: str, broker_url: str, tmp_path: Path
) -> None:
    with (
        pgbouncer(database_url, "session", tls=True) as url,
        Scene(url, broker_url, tmp_path) as scene,
    ):
        assert scene.conn.pgconn.ssl_in_use
        hundred_runs(scene, [], 2)


def hundred_runs(scene: Scene, options: list[str], processes: int) -> None:
    """A hundred runs in a prefork pool of four, after the parent itself has used the ledger."""
    worker = scene.worker(
        "w",
        concurrency=4,
        beat=True,
        app=APP,
        env=scene.env() | {VARIANT: "querying"},
        options=options,
    )
    assert "the parent has read 0 runs" in worker.log

    runs = [scene.begin("retried") for _ in range(100)]
    for run_id in runs:
        scene.await_status(run_id, "finished", within=120)

    assert all(len(scene.provider.acts_of(run_id)) == 1 for run_id in runs)
    assert not [word for word in _BROKEN if word in worker.log]
    assert not {"crashed", "abandoned", "hung"} & {kind for run_id in runs for kind in scene.kinds(run_id)}
    owners = {entry.pid for run_id in runs for entry in scene.trail.entries(run_id)}
    assert len(owners) >= processes
    assert worker.pid not in owners
    # While the children are there, each pen is a backend of its own.
    rows = scene.conn.execute(
        "SELECT count(*) AS pens, count(DISTINCT client_port) AS ports FROM pg_stat_activity"
        " WHERE application_name LIKE 'celegraph pen%' AND datname = current_database()"
    ).fetchone()
    assert rows is not None
    assert rows["pens"] == rows["ports"]
