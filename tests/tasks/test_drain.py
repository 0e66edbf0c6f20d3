"""A worker that is told to go hands its runs back at the next step, and nothing is lost or repeated."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from celegraph import cancel_run, decide
from tests.support.host import APP, VARIANT
from tests.support.scene import Scene
from tests.support.waiting import eventually

STEPS = ["one", "two", "three", "four", "last"]


def stop_inside_a_step(scene: Scene, pool: str, *numbers: signal.Signals, variant: str = "plain") -> str:
    """A run whose worker got the signals while its second node was at work; the worker has gone."""
    app = APP
    if pool == "spawn":
        pool, app = "prefork", "tests.support.spawned:app"
    worker = scene.worker("first", pool=pool, app=app, env=scene.env() | {VARIANT: variant})
    scene.gates.close("two")
    run_id = scene.begin("steps")
    scene.gates.await_arrival("two", run_id)

    for number in numbers:
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


@pytest.mark.parametrize("pool", ["prefork", "spawn", "threads", "solo"])
def test_sigterm_hands_the_run_back_after_the_step_and_no_step_runs_twice(scene: Scene, pool: str) -> None:
    run_id = stop_inside_a_step(scene, pool, signal.SIGTERM)

    assert scene.trail.steps(run_id) == ["one", "two"]
    assert (scene.run(run_id).crash_count, scene.run(run_id).reason) == (0, "worker drains")
    finish_elsewhere(scene, run_id)
    assert scene.trail.steps(run_id) == STEPS
    assert "crashed" not in scene.kinds(run_id)


@pytest.mark.parametrize(
    ("pool", "numbers"),
    [
        ("prefork", [signal.SIGINT]),
        ("threads", [signal.SIGINT]),
        ("threads", [signal.SIGQUIT]),
        ("threads", [signal.SIGTERM, signal.SIGQUIT]),
        ("solo", [signal.SIGQUIT]),
        ("solo", [signal.SIGINT, signal.SIGINT]),
        ("solo", [signal.SIGTERM, signal.SIGQUIT, signal.SIGQUIT]),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(number.name for number in given),
)
def test_other_signals_hand_the_run_back_too(scene: Scene, pool: str, numbers: list[signal.Signals]) -> None:
    run_id = stop_inside_a_step(scene, pool, *numbers)

    assert scene.trail.steps(run_id) == ["one", "two"]
    finish_elsewhere(scene, run_id)
    assert scene.trail.steps(run_id) == STEPS
    assert "crashed" not in scene.kinds(run_id)


def test_a_cold_shutdown_of_a_solo_worker_does_not_fail_a_step_on_the_event_loop(scene: Scene) -> None:
    """Celery tries to cancel the task, in the very thread that the task is in, and cannot."""
    worker = scene.worker("first", pool="solo")
    for gate in ("hold", "last"):
        scene.gates.close(gate)
    run_id = scene.begin("holding")
    scene.gates.await_arrival("hold", run_id)

    worker.send(signal.SIGQUIT)
    eventually(lambda: "Hitting Ctrl+C again will terminate all running tasks!" in worker.log)
    scene.gates.open("hold")
    # As the next step may begin before the loop, free again, has looked at the flag.
    eventually(lambda: scene.run(run_id).draining or scene.run(run_id).status == "ready")
    scene.gates.open("last")

    scene.await_status(run_id, "ready", "finished")
    worker.wait()
    finish_elsewhere(scene, run_id)
    assert scene.trail.steps(run_id) == ["one", "hold", "last"]
    assert "crashed" not in scene.kinds(run_id)


def test_a_long_run_of_short_steps_is_with_another_worker_within_a_step(scene: Scene) -> None:
    first = scene.worker("first", concurrency=1)
    run_id = scene.begin("fifty")
    eventually(lambda: "s2" in scene.trail.steps(run_id))
    second = scene.worker("second", beat=True, concurrency=1)

    first.send(signal.SIGTERM)
    told = time.monotonic()
    moved = eventually(lambda: [e for e in scene.trail.entries(run_id) if e.pid in second.children()])

    cancel_run(run_id)
    # Its own step's second, and what a loaded machine needs to hand it over.
    assert moved[0].at - told < 1 + 3
    steps = scene.trail.steps(run_id)
    assert steps == [f"s{n}" for n in range(1, len(steps) + 1)]
    assert (scene.run(run_id).crash_count, first.wait()) == (0, 0)
    assert "crashed" not in scene.kinds(run_id)
    scene.await_status(run_id, "cancelled")


@pytest.mark.parametrize(
    "options",
    [["--max-tasks-per-child", "1"], ["--max-memory-per-child", "1"]],
    ids=["after one task", "over its memory"],
)
def test_a_child_that_is_replaced_after_its_task_costs_its_runs_nothing(
    scene: Scene, options: list[str]
) -> None:
    scene.worker("w", beat=True, options=options)
    first = scene.begin("approved")
    question = scene.question(first)
    scene.await_status(first, "waiting")

    decide(question.approval_id, "approve", by="anna")
    runs = [first, *(scene.begin("steps") for _ in range(4))]

    for run_id in runs:
        scene.await_status(run_id, "finished")
        assert not {"crashed", "abandoned", "hung"} & set(scene.kinds(run_id))
    assert len({entry.pid for entry in scene.trail.entries()}) >= 5
    assert len(scene.provider.acts_of(first)) == 1


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
    run_id = stop_inside_a_step(scene, "prefork", signal.SIGQUIT, variant="soft")

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


def test_the_next_worker_removes_a_killed_workers_flag_and_leaves_a_living_ones(
    scene: Scene, tmp_path: Path
) -> None:
    def flags() -> set[Path]:
        return set(folder.glob("celegraph-flag-*"))

    folder = tmp_path / "temporary"
    folder.mkdir()
    env = scene.env() | {"TMPDIR": str(folder)}
    scene.worker("living", env=env)
    (kept,) = flags()
    killed = scene.worker("killed", env=env)
    (left,) = flags() - {kept}
    killed.kill()

    scene.worker("next", env=env)

    assert kept in flags()
    assert left not in flags()
    assert len(flags()) == 2
