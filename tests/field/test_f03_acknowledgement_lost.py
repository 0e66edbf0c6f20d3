"""F03: a run has finished, but the acknowledgement of its message was lost."""

from __future__ import annotations

import redis

from tests.support.scene import Scene
from tests.support.waiting import eventually


def test_a_message_of_a_finished_run_does_nothing_and_is_acknowledged(scene: Scene) -> None:
    run_id = scene.begin("retried")
    with redis.Redis.from_url(scene.broker_url) as client:
        (message,) = client.lrange("celegraph", 0, -1)
        first = scene.worker("first")
        before = scene.await_status(run_id, "finished")
        eventually(lambda: client.hlen("unacked") == 0)
        steps, events = scene.trail.steps(run_id), scene.kinds(run_id)
        first.kill()

        client.rpush("celegraph", message)  # byte for byte, as the broker does after a lost ack
        second = scene.worker("second")
        eventually(lambda: f"start_run[{run_id}] succeeded" in second.log)

        # The worker writes its log before it acknowledges.
        eventually(lambda: (client.hlen("unacked"), client.llen("celegraph")) == (0, 0))
    after = scene.run(run_id)
    assert (after.status, after.finished_at, after.epoch) == ("finished", before.finished_at, before.epoch)
    assert (scene.trail.steps(run_id), scene.kinds(run_id)) == (steps, events)
    assert len(scene.provider.acts_of(run_id)) == 1
