"""F95: deploy: SIGTERM, short grace, SIGKILL."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import Any

import pytest
import redis

from tests.support.scene import Scene
from tests.support.waiting import eventually


def _old_messages(scene: Scene, run_id: str) -> int:
    """What the killed worker had in its hands of this run, and nobody has given back.

    Of this run: it may have held a tick, too.
    """
    with redis.Redis.from_url(scene.broker_url) as client:
        return sum(run_id.encode() in message for message in client.hvals("unacked"))


def _force_redelivery(scene: Scene) -> None:
    """As after the visibility timeout: every message on a dead worker's desk goes back to the queue."""
    with scene.app.connection_for_read() as connection, redis.Redis.from_url(scene.broker_url) as client:
        channel: Any = connection.default_channel
        for tag in client.hkeys("unacked"):
            channel.qos.restore_by_tag(tag.decode())


def test_the_run_is_back_in_seconds_and_its_old_message_acts_no_more(scene: Scene) -> None:
    scene.configure(lease="3s", beat_every="1s")
    first = scene.worker("first")
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("pay", run_id)
    scene.worker("second", beat=True)

    first.send(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        first.wait(within=3)  # the grace
    first.kill()
    killed = time.monotonic()
    arrival = scene.gates.await_arrival("pay", run_id, number=2)
    resumed = next(e for e in scene.trail.entries(run_id) if e.pid == arrival.pid).at
    scene.gates.open("pay")

    scene.await_status(run_id, "finished")
    assert resumed - killed < 10
    assert len(scene.provider.acts_of(run_id)) == 1
    assert "crashed" not in scene.kinds(run_id)
    before = (scene.kinds(run_id), scene.trail.steps(run_id))

    eventually(lambda: _old_messages(scene, run_id) == 1)  # and what the second one had is acknowledged
    _force_redelivery(scene)
    eventually(lambda: _old_messages(scene, run_id) == 0, within=30)
    scene.await_status(scene.begin("steps"), "finished")  # behind it in the queue

    assert (scene.kinds(run_id), scene.trail.steps(run_id)) == before
    assert len(scene.provider.acts_of(run_id)) == 1
