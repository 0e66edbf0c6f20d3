"""F75: the lock vanishes with its backend, and the worker goes on."""

from __future__ import annotations

from tests.support.scene import Scene
from tests.support.waiting import eventually


def test_an_owner_without_its_lock_does_not_act_beside_the_new_one(scene: Scene) -> None:
    first = scene.worker("first")
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("pay", run_id)

    scene.conn.execute(
        "SELECT pg_terminate_backend(backend_pid) FROM run_leases WHERE run_id = %(run_id)s",
        {"run_id": run_id},
    )
    second = scene.worker("second", beat=True)
    scene.gates.await_arrival("pay", run_id, number=2)
    scene.gates.open("pay")

    scene.await_status(run_id, "finished")
    assert len(scene.provider.acts_of(run_id)) == 1
    eventually(lambda: "run abandoned" in first.log + second.log)
    assert scene.run(run_id).status == "finished"
    assert [effect.attempts for effect in scene.effects(run_id)] == [1]
