"""F93: OOM for ever."""

from __future__ import annotations

from tests.support.scene import Scene


def test_a_node_that_kills_its_process_is_tried_three_times_and_then_set_aside(scene: Scene) -> None:
    scene.worker("w", beat=True)

    run_id = scene.begin("paid_killing", cents=99)
    beside = [scene.begin("steps") for _ in range(5)]

    run = scene.await_status(run_id, "quarantined", within=60)
    assert scene.trail.steps(run_id) == ["pay", "kill", "kill", "kill"]
    assert run.crash_count == 3
    assert run.reason == "stopped its worker 3 times without progress after step 1 (next: kill)"
    # The first death may be an accident; after the second the run waits, and longer each time.
    _, second, third = (e.at for e in scene.trail.entries(run_id) if e.step == "kill")
    assert third - second > 2
    for other in beside:
        scene.await_status(other, "finished")
    scene.await_status(scene.begin("steps"), "finished")
    assert len(scene.provider.acts_of(run_id)) == 1
    assert [effect.attempts for effect in scene.effects(run_id)] == [1]
