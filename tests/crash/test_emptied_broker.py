"""F104: the broker loses everything: runs queued, running and just approved all end."""

from __future__ import annotations

from collections import Counter

import redis

from celegraph import decide
from tests.support.scene import Scene
from tests.support.waiting import eventually


def test_thirty_runs_end_once_although_the_broker_was_emptied(scene: Scene) -> None:
    control = scene.control()
    worker = scene.worker("w", queues=["celegraph"], pool="threads", concurrency=10)
    approved = [scene.begin("approved") for _ in range(10)]
    questions = [scene.question(run_id) for run_id in approved]
    scene.gates.close("two")
    running = [scene.begin("retried") for _ in range(10)]
    eventually(lambda: len(scene.gates.arrivals("two")) == 10)
    queued = [scene.begin("retried") for _ in range(10)]
    for question in questions:
        decide(question.approval_id, "approve", by="anna")

    with redis.Redis.from_url(scene.broker_url) as client:
        assert client.llen("celegraph") >= 20
        client.flushall()
    scene.gates.open("two")

    for run_id in [*approved, *running, *queued]:
        scene.await_status(run_id, "finished")
    acts = Counter(act.body["run_id"] for act in scene.provider.acts())
    assert acts == Counter([*approved, *running, *queued])
    assert scene.provider.doubled() == {}
    assert worker.running
    assert control.running
