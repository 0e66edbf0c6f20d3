"""What a node can do to its process, and what becomes of the run then."""

from __future__ import annotations

import pytest

from celegraph import cancel_run, release_run
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.workers import answered

FATAL = {
    "exiting": "NodeExited",
    "exiting_awaited": "NodeExited",
    "eating": "MemoryError",
    "eating_awaited": "MemoryError",
}


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_node_that_would_end_the_worker_fails_its_run_alone(scene: Scene, pool: str) -> None:
    worker = scene.worker("w", pool=pool, concurrency=1)
    children = worker.children()

    for agent, error in FATAL.items():
        run = scene.await_status(scene.begin(agent), "failed")
        assert run.error["type"].endswith(error)
        assert run.crash_count == 0

    scene.await_status(scene.begin("steps"), "finished")
    assert worker.running
    assert worker.children() == children


def test_a_run_that_kills_its_workers_is_quarantined_and_can_be_released(scene: Scene) -> None:
    scene.configure(max_crashes="2")
    scene.worker("w", beat=True)

    run_id = scene.begin("killing", cents=2)

    run = scene.await_status(run_id, "quarantined")
    assert (run.crash_count, scene.trail.steps(run_id)) == (2, ["one", "kill", "kill"])
    assert run.reason == "stopped its worker 2 times without progress after step 1 (next: kill)"
    release_run(run_id, by="anna")
    assert scene.await_status(run_id, "finished").output["receipt"] == "survived"
    assert scene.trail.steps(run_id) == ["one", "kill", "kill", "kill", "last"]


def test_a_node_that_always_hits_the_hard_limit_is_quarantined(scene: Scene) -> None:
    scene.configure(max_crashes="2")
    scene.worker("w", beat=True, options=["--time-limit", "1"])
    scene.gates.close("two")

    run_id = scene.begin("steps")

    run = scene.await_status(run_id, "quarantined")
    assert run.crash_count == 2
    assert scene.trail.steps(run_id) == ["one", "two", "two"]
    assert "(next: two)" in str(run.reason)


def test_a_cancelled_run_stops_at_its_next_step(scene: Scene) -> None:
    worker = scene.worker("w")
    scene.gates.close("two")
    run_id = scene.begin("steps")
    scene.gates.await_arrival("two", run_id)

    assert cancel_run(run_id) == "running"
    # Noticed between two beats, which are ten seconds apart.
    eventually(lambda: "run is to be cancelled" in worker.log, within=3)
    scene.gates.open("two")

    run = scene.await_status(run_id, "cancelled")
    assert run.reason == "cancelled on request"
    assert scene.trail.steps(run_id) == ["one", "two"]


def test_revoking_a_runs_message_cancels_the_run(scene: Scene) -> None:
    worker = scene.worker("w")
    answered(lambda: scene.app.control.revoke("r-revoked", reply=True, timeout=5, limit=1))

    scene.begin("steps", run_id="r-revoked")

    run = scene.await_status("r-revoked", "cancelled")
    assert run.reason == "its message was revoked"
    assert scene.trail.steps("r-revoked") == []
    assert worker.running
