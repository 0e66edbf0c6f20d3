"""Programs that do not import celegraph start runs by name."""

from __future__ import annotations

from typing import Any

import pytest
from celery import Celery

from celegraph.ledger.runs import list_runs
from tests.support.scene import Scene
from tests.support.waiting import eventually


@pytest.mark.parametrize(
    ("args", "kwargs"), [([], {"agent": "retried", "input": {"cents": 5}}), (["retried", {"cents": 5}], {})]
)
def test_a_message_sent_by_name_and_delivered_twice_is_one_run(
    scene: Scene, args: list[Any], kwargs: dict[str, Any]
) -> None:
    stranger = Celery("stranger", broker=scene.broker_url)
    stranger.conf.task_default_queue = "celegraph"

    for _ in range(2):
        stranger.send_task("celegraph.start_run", args, kwargs, task_id="m-1")
    scene.worker("w")

    run = eventually(lambda: list_runs(scene.conn))[0]
    assert run.run_id == "m-1"
    scene.await_status("m-1", "finished")
    eventually(lambda: scene.kinds("m-1").count("finished") == 1)
    assert len(list_runs(scene.conn)) == 1
    assert len(scene.provider.acts()) == 1
