"""F84: a stalled worker wakes up after another one has taken its run."""

from __future__ import annotations

import pytest

from tests.support.scene import Scene
from tests.support.waiting import eventually


@pytest.mark.parametrize("second_host", ["b", "a"], ids=["another hostname", "the same hostname"])
def test_a_worker_that_wakes_up_changes_nothing(scene: Scene, second_host: str) -> None:
    scene.configure(lease="1s", beat_every="300ms")
    zombie = scene.worker("zombie", options=["-n", "a@shop"])
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("pay", run_id)

    zombie.freeze()
    scene.worker("second", beat=True, options=["-n", f"{second_host}@shop"])
    scene.gates.await_arrival("pay", run_id, number=2)
    scene.gates.open("pay")
    finished = scene.await_status(run_id, "finished")
    events = scene.kinds(run_id)
    zombie.thaw()
    eventually(lambda: "run abandoned" in zombie.log)

    assert len(scene.provider.acts_of(run_id)) == 1
    after = scene.run(run_id)
    assert (after.status, after.epoch, after.finished_at) == (
        "finished",
        finished.epoch,
        finished.finished_at,
    )
    assert after.output == finished.output
    assert scene.kinds(run_id) == events


def test_a_worker_that_wakes_up_cannot_disturb_the_new_owner_at_work(scene: Scene) -> None:
    scene.configure(lease="1s", beat_every="300ms")
    zombie = scene.worker("zombie", options=["-n", "a@shop"])
    scene.gates.close("two")
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("two", run_id)

    zombie.freeze()
    scene.worker("second", beat=True, options=["-n", "a@shop"])
    scene.gates.await_arrival("two", run_id, number=2)
    scene.gates.open("two")
    scene.gates.await_arrival("pay", run_id)
    owner = scene.run(run_id)
    zombie.thaw()
    eventually(lambda: "run abandoned" in zombie.log)

    now = scene.run(run_id)
    assert (now.status, now.epoch, now.worker_id) == ("running", owner.epoch, owner.worker_id)
    scene.gates.open("pay")
    scene.await_status(run_id, "finished")
    assert len(scene.provider.acts_of(run_id)) == 1
