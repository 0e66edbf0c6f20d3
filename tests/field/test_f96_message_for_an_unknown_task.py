"""F96: message for a task name the worker does not know."""

from __future__ import annotations

import pytest

from tests.support.scene import Scene
from tests.support.waiting import eventually


def test_a_run_whose_message_an_old_worker_threw_away_is_picked_up_by_the_sweep(scene: Scene) -> None:
    old = scene.worker("old", app="tests.support.bare_app:app", queues=["celegraph"])
    run_id = scene.begin("retried")
    eventually(lambda: "Received unregistered task" in old.log)
    assert scene.run(run_id).status == "ready"

    old.kill()
    scene.worker("new", beat=True)

    scene.await_status(run_id, "finished")
    assert len(scene.provider.acts_of(run_id)) == 1


@pytest.mark.timeout(240)
def test_an_old_worker_beside_a_new_one_delays_runs_until_it_goes_and_loses_none(scene: Scene) -> None:
    old = scene.worker("old", app="tests.support.bare_app:app", queues=["celegraph"])
    scene.worker("new", beat=True)

    runs = [scene.begin("retried") for _ in range(6)]
    eventually(lambda: "unregistered task of type 'celegraph.start_run'" in old.log)
    old.kill()

    for run_id in runs:
        scene.await_status(run_id, "finished", within=60)
        assert len(scene.provider.acts_of(run_id)) == 1
