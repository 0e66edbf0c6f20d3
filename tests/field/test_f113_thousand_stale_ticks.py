"""F113: beat went on while no worker did; workers that come back are not drowned in what is stale."""

from __future__ import annotations

import time

import redis

from celegraph.beat_schedule import beat_schedule
from tests.support.process import cpu_seconds
from tests.support.scene import Scene
from tests.support.waiting import eventually

SECONDS = 500
RUNS = 50


def send_ticks(scene: Scene, seconds: int) -> int:
    """What beat has sent in so many seconds, oldest first, with the same entries and options; how many.

    Each of these is as old as it would be: it expired when its interval was over.
    """
    entries = beat_schedule(scene.config).values()
    due = sorted(
        (second * entry["schedule"], entry["task"], entry["options"]["queue"])
        for entry in entries
        for second in range(int(seconds / entry["schedule"]))
    )
    with scene.app.producer_pool.acquire(block=True) as producer:
        for _, task, queue in due:
            scene.app.send_task(task, queue=queue, expires=0.001, producer=producer)
    return len(due)


def test_fresh_runs_behind_a_thousand_stale_ticks_are_served_at_once(scene: Scene) -> None:
    with redis.Redis.from_url(scene.broker_url) as client:
        sent = send_ticks(scene, SECONDS)
        assert sent > 850
        assert client.llen("celegraph") + client.llen("celegraph.control") == sent
        run_ids = [scene.begin("retried") for _ in range(RUNS)]

        worker = scene.worker("w", concurrency=4, beat=True)
        began, worked = time.monotonic(), cpu_seconds(worker.pid, *worker.children())
        eventually(lambda: scene.trail.entries(), within=60)
        # On a machine that has nothing else to do the two are the same.
        served = min(time.monotonic() - began, cpu_seconds(worker.pid, *worker.children()) - worked)

        for run_id in run_ids:
            scene.await_status(run_id, "finished", within=60)
        eventually(lambda: client.llen("celegraph.control") <= 2)
    assert served < 5
    assert worker.log.count("Discarding revoked task: celegraph.") >= sent
    assert len(scene.provider.acts()) == RUNS
