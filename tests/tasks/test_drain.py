"""A worker that is told to go hands its runs back at the next step, and nothing is lost or repeated."""

from __future__ import annotations

import os
import signal

import pytest

from tests.support.host import APP, VARIANT
from tests.support.scene import Scene
from tests.support.waiting import eventually

STEPS = ["one", "two", "three", "four", "last"]


def stop_inside_a_step(scene: Scene, pool: str, number: signal.Signals, variant: str = "plain") -> str:
    """A run whose worker got the signal while its second node was at work; the worker has gone."""
    worker = scene.worker("first", pool=pool, app=APP, env=scene.env() | {VARIANT: variant})
    scene.gates.close("two")
    run_id = scene.begin("steps")
    scene.gates.await_arrival("two", run_id)

    worker.send(number)
    eventually(lambda: scene.run(run_id).draining)
    scene.gates.open("two")

    scene.await_status(run_id, "ready")
    worker.wait()
    return run_id


def finish_elsewhere(scene: Scene, run_id: str) -> None:
    """Another worker goes on with the run and ends it."""
    scene.worker("second")
    scene.await_status(run_id, "finished")


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_sigterm_hands_the_run_back_after_the_step_and_no_step_runs_twice(scene: Scene, pool: str) -> None:
    run_id = stop_inside_a_step(scene, pool, signal.SIGTERM)

    assert scene.trail.steps(run_id) == ["one", "two"]
    assert (scene.run(run_id).crash_count, scene.run(run_id).reason) == (0, "worker drains")
    finish_elsewhere(scene, run_id)
    assert scene.trail.steps(run_id) == STEPS
    assert "crashed" not in scene.kinds(run_id)


def test_a_shutdown_by_remote_control_drains_too(scene: Scene) -> None:
    worker = scene.worker("first")
    scene.gates.close("two")
    run_id = scene.begin("steps")
    scene.gates.await_arrival("two", run_id)

    scene.app.control.shutdown()
    eventually(lambda: scene.run(run_id).draining)
    scene.gates.open("two")

    scene.await_status(run_id, "ready")
    worker.wait()
    assert scene.trail.steps(run_id) == ["one", "two"]


def test_a_soft_shutdown_lets_the_step_end(scene: Scene) -> None:
    run_id = stop_inside_a_step(scene, "prefork", signal.SIGQUIT, "soft")

    finish_elsewhere(scene, run_id)

    assert scene.trail.steps(run_id) == STEPS
    assert "crashed" not in scene.kinds(run_id)


def test_a_cold_shutdown_hands_the_run_back_in_the_middle_of_a_step(scene: Scene) -> None:
    worker = scene.worker("first")
    scene.gates.close("two")
    run_id = scene.begin("steps")
    scene.gates.await_arrival("two", run_id)

    worker.send(signal.SIGQUIT)

    # The node's thread still stands at the gate: nobody waits for it.
    scene.await_status(run_id, "ready")
    worker.wait()
    assert scene.run(run_id).crash_count == 0
    scene.gates.open("two")
    finish_elsewhere(scene, run_id)
    assert scene.trail.steps(run_id) == ["one", "two", "two", *STEPS[2:]]
    assert "crashed" not in scene.kinds(run_id)


def test_a_whole_group_that_is_terminated_counts_no_death(scene: Scene) -> None:
    """systemd's KillMode=control-group: children get SIGTERM beside their main process."""
    worker = scene.worker("first")
    scene.gates.close("two")
    run_id = scene.begin("steps")
    scene.gates.await_arrival("two", run_id)

    os.killpg(worker.pid, signal.SIGTERM)

    scene.await_status(run_id, "ready")
    worker.wait()
    scene.gates.open("two")
    finish_elsewhere(scene, run_id)
    assert "crashed" not in scene.kinds(run_id)


def test_a_kill_after_the_drain_has_begun_is_no_death_of_the_run(scene: Scene) -> None:
    """Kubernetes: SIGTERM, and SIGKILL when the grace period is over."""
    worker = scene.worker("first")
    scene.gates.close("two")
    run_id = scene.begin("steps")
    scene.gates.await_arrival("two", run_id)
    worker.send(signal.SIGTERM)
    eventually(lambda: scene.run(run_id).draining)

    worker.kill()

    scene.gates.open("two")
    finish_elsewhere(scene, run_id)
    assert "crashed" not in scene.kinds(run_id)
    assert "drained" in scene.kinds(run_id)


def test_the_soft_time_limit_drains(scene: Scene) -> None:
    scene.worker("w", options=["--soft-time-limit", "1"])
    scene.gates.close("two")
    run_id = scene.begin("steps")
    scene.gates.await_arrival("two", run_id)

    eventually(lambda: scene.run(run_id).draining)
    scene.gates.open("two")

    scene.await_status(run_id, "finished")
    assert scene.trail.steps(run_id) == STEPS
    (drained,) = [event for event in scene.events(run_id) if event.kind == "drained"]
    assert drained.data["reason"] == "soft time limit"
