"""F94: hard time limit acks the message."""

from __future__ import annotations

from tests.support.scene import Scene


def test_a_node_over_the_hard_limit_is_taken_up_and_counted_until_it_is_quick_enough(scene: Scene) -> None:
    scene.worker("w", options=["--time-limit", "2"], beat=True)
    scene.gates.close("two")

    run_id = scene.begin("steps")
    scene.gates.await_arrival("two", run_id, number=2, within=40)
    counted = scene.run(run_id).crash_count
    scene.gates.open("two")

    run = scene.await_status(run_id, "finished")
    assert counted == 1
    assert scene.kinds(run_id).count("crashed") in (1, 2)  # the second pass may have been over it, too
    assert scene.trail.steps(run_id)[:3] == ["one", "two", "two"]
    assert run.crash_count == 0


def test_a_node_that_is_never_quick_enough_does_not_stay_running(scene: Scene) -> None:
    scene.configure(max_crashes="2")
    scene.worker("w", options=["--time-limit", "2"], beat=True)
    scene.gates.close("two")

    run_id = scene.begin("steps")

    run = scene.await_status(run_id, "quarantined", within=60)
    assert (run.crash_count, scene.trail.steps(run_id)) == (2, ["one", "two", "two"])
    assert "(next: two)" in str(run.reason)
