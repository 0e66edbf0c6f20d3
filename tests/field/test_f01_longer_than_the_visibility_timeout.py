"""F01: a node runs longer than the visibility timeout, and copies of its message arrive beside it."""

from __future__ import annotations

import redis

from tests.support.host import APP, VARIANT
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.workers import Worker

# kombu looks for overdue messages every ten seconds, in each worker.
_LOOKS = 60.0


def impatient(scene: Scene, name: str) -> Worker:
    """A worker for which every message is overdue after a second."""
    return scene.worker(name, app=APP, env=scene.env() | {VARIANT: "impatient"}, beat=True)


def copies(run_id: str, *workers: Worker) -> int:
    """How often the run's first message was delivered."""
    return sum(worker.log.count(f"start_run[{run_id}] received") for worker in workers)


def left_in_broker(scene: Scene) -> int:
    """Messages that wait or are on somebody's desk."""
    with redis.Redis.from_url(scene.broker_url) as client:
        return int(client.hlen("unacked")) + int(client.llen("celegraph"))


def test_a_copy_of_a_live_runs_message_leaves_at_once(scene: Scene) -> None:
    workers = [impatient(scene, name) for name in ("a", "b")]
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("pay", run_id)

    eventually(lambda: copies(run_id, *workers) > 1, within=_LOOKS)
    scene.gates.open("pay")

    scene.await_status(run_id, "finished")
    assert scene.trail.steps(run_id) == ["one", "two", "pay", "last"]
    assert len(scene.provider.acts_of(run_id)) == 1
    eventually(lambda: left_in_broker(scene) == 0, within=_LOOKS)


def test_the_run_goes_on_when_its_owner_dies_after_the_copy_has_left(scene: Scene) -> None:
    workers = {worker.name: worker for worker in (impatient(scene, "a"), impatient(scene, "b"))}
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    arrival = scene.gates.await_arrival("pay", run_id)
    # The copy was acknowledged, and with it the original: the broker knows nothing of the run any more.
    eventually(lambda: copies(run_id, *workers.values()) > 1 and left_in_broker(scene) == 0, within=_LOOKS)

    next(w for w in workers.values() if arrival.pid in w.children()).kill()
    scene.gates.open("pay")

    scene.await_status(run_id, "finished")
    assert scene.trail.steps(run_id) == ["one", "two", "pay", "pay", "last"]
    assert len(scene.provider.acts_of(run_id)) == 1
