"""A run that waits for a busy provider holds nothing while it waits."""

from __future__ import annotations

from datetime import timedelta

import redis

from celegraph import explain_run
from celegraph.ledger.for_tests import pass_time
from tests.support.scene import Scene
from tests.support.waiting import eventually


def test_a_run_that_was_told_to_come_back_in_an_hour_leaves_its_only_slot_to_others(scene: Scene) -> None:
    worker = scene.worker("w", concurrency=1, beat=True)

    run_id = scene.begin("refused")
    eventually(lambda: "sleeps" in scene.kinds(run_id))
    scene.await_status(scene.begin("steps"), "finished")

    run = scene.run(run_id)
    assert run.wake_at is not None
    assert run.now is not None
    assert timedelta(minutes=59) < run.wake_at - run.now <= timedelta(hours=1)
    assert "HTTPStatusError in the graph, retry 1 of 4" in explain_run(run_id).sentence
    with redis.Redis.from_url(scene.broker_url) as client:
        eventually(lambda: not client.hlen("unacked"))  # no message waits for it anywhere
        assert client.llen("celegraph") == 0
    pass_time(scene.conn, run_id, timedelta(hours=1))
    scene.await_status(run_id, "finished")
    assert scene.trail.steps(run_id) == ["one", "ask", "ask", "last"]
    assert worker.running
