"""A queue that nobody empties: runs are rung again, but their doorbells do not become the trouble."""

from __future__ import annotations

import redis

from celegraph.tasks.installation import installation
from celegraph.tasks.periodic import sweep
from tests.support.scene import Scene
from tests.support.waiting import eventually

RUNS = 30


def pass_time(scene: Scene, minutes: int) -> None:
    """Everything that was rung was rung so much earlier."""
    scene.conn.execute(
        "UPDATE runs SET rung_at = rung_at - %(by)s::interval, ring_at = ring_at - %(by)s::interval",
        {"by": f"{minutes} minutes"},
    )


def test_messages_stay_below_twice_the_ready_runs_while_nobody_serves_them(scene: Scene) -> None:
    run_ids = [scene.begin("retried") for _ in range(RUNS)]
    with redis.Redis.from_url(scene.broker_url) as client:
        # Nine minutes, each with its sweeps.
        for _ in range(9):
            pass_time(scene, 1)
            sweep(installation())
            sweep(installation())
        assert RUNS < client.llen("celegraph") < 2 * RUNS

        scene.worker("w", concurrency=4, beat=True)
        for run_id in run_ids:
            scene.await_status(run_id, "finished", within=60)
        eventually(lambda: client.llen("celegraph") == 0)
    assert len(scene.provider.acts()) == RUNS


def test_a_lost_doorbell_is_found_behind_other_peoples_messages(scene: Scene) -> None:
    run_id = scene.begin("steps")
    with redis.Redis.from_url(scene.broker_url) as client:
        client.delete("celegraph")
        client.rpush("celegraph", *[b"somebody else's"] * 100)

        pass_time(scene, 2)
        assert sweep(installation()).ring == []
        pass_time(scene, 10)
        assert sweep(installation()).ring == [run_id]

        assert client.llen("celegraph") == 101


def test_an_emptied_queue_is_filled_again_at_once_whatever_was_rung(scene: Scene) -> None:
    run_ids = {scene.begin("steps") for _ in range(RUNS)}
    pass_time(scene, 2)
    with redis.Redis.from_url(scene.broker_url) as client:
        client.flushall()

        rung = set(sweep(installation()).ring)

        assert rung == run_ids
        assert client.llen("celegraph") == RUNS
