"""A few kills of `make recovery`, in the suite: how long they take is the bench's to judge."""

from __future__ import annotations

from pathlib import Path

from tests.bench.recovery import measure, told
from tests.support.scene import Scene


def test_runs_of_a_killed_worker_go_on_at_the_other_one(
    database_url: str, broker_url: str, tmp_path: Path
) -> None:
    said: list[str] = []
    with Scene(database_url, broker_url, tmp_path, settings={}) as scene:
        taken = measure(scene, 3, 1, said.append)

    assert told(taken).startswith("recovery kills=3 median_s=")
    # Celery alone would take its visibility timeout, an hour.
    assert max(taken) < 30.0, said
