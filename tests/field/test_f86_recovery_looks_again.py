"""F86: whoever has just adopted a run dies, again and again."""

from __future__ import annotations

from tests.support.scene import Scene

ADOPTIONS = 3


def test_every_adopter_that_dies_is_followed_by_another(scene: Scene) -> None:
    scene.configure(max_crashes=str(ADOPTIONS + 1))
    scene.control()
    scene.gates.close("two")
    run_id = scene.begin("retried")

    for number in range(1, ADOPTIONS + 1):
        adopter = scene.worker(f"adopter-{number}", pool="solo", queues=["celegraph"])
        scene.gates.await_arrival("two", run_id, number=number)
        adopter.kill()
    scene.gates.open("two")
    scene.worker("last", pool="solo", queues=["celegraph"])

    scene.await_status(run_id, "finished")
    assert scene.kinds(run_id).count("crashed") == ADOPTIONS
    assert scene.trail.steps(run_id) == ["one", *["two"] * (ADOPTIONS + 1), "pay", "last"]
    assert len(scene.provider.acts_of(run_id)) == 1
