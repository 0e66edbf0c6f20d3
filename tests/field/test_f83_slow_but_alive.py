"""F83: a node takes longer than the lease, but its worker is alive."""

from __future__ import annotations

from datetime import timedelta

from tests.support.scene import Scene
from tests.support.waiting import eventually

LEASE = timedelta(seconds=1)


def test_a_slow_node_keeps_its_run_for_as_long_as_it_takes(scene: Scene) -> None:
    scene.configure(lease="1s", beat_every="300ms")
    scene.worker("a", beat=True)
    scene.worker("b", pool="threads")
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("pay", run_id)
    began = scene.run(run_id).now
    assert began is not None

    for _ in range(5):  # doorbells for a run that is at work
        scene.app.tasks["celegraph.resume"].apply_async(kwargs={"run_id": run_id}, queue="celegraph")
    eventually(lambda: (scene.run(run_id).expires_at or began) > began + 4 * LEASE)
    scene.gates.open("pay")

    scene.await_status(run_id, "finished")
    assert scene.kinds(run_id).count("leased") == 1
    assert scene.trail.steps(run_id) == ["one", "two", "pay", "last"]
    assert len(scene.provider.acts_of(run_id)) == 1
