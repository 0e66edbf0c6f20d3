"""F136 Flower forgets on restart; the ledger still tells runs, waits, parked ones and crashes."""

from __future__ import annotations

import json

from click.testing import CliRunner

from celegraph import list_approvals, list_runs, pause_run
from celegraph.cli.group import main
from tests.support.flower import Flower
from tests.support.process import kill_and_await
from tests.support.scene import Scene
from tests.support.waiting import eventually


def test_the_ledgers_own_views_know_every_run_after_flower_was_restarted(scene: Scene) -> None:
    with Flower(scene) as flower:
        scene.worker("w", options=["-E"])
        scene.control()
        waiting = scene.begin("approved")
        question = scene.question(waiting)
        parked = scene.begin("approved")
        scene.await_status(parked, "waiting")
        pause_run(parked)
        scene.gates.close("two")
        crashed = scene.begin("steps")
        scene.gates.await_arrival("two", crashed)
        kill_and_await(scene.owner_pid(crashed))
        eventually(lambda: scene.run(crashed).crash_count == 1)
        assert flower.tasks(waiting)

        flower.kill()
        flower.start()

        assert flower.tasks(waiting) == []
        runs = {run.run_id: (run.agent, run.status, run.crash_count) for run in list_runs()}
        assert runs[waiting] == ("approved", "waiting", 0)
        assert runs[parked] == ("approved", "paused", 0)
        assert runs[crashed][0] == "steps"
        assert runs[crashed][2] == 1
        assert [q.approval_id for q in list_approvals(run_id=waiting)] == [question.approval_id]
        answer = CliRunner().invoke(main, ["--json", "--database-url", scene.database_url, "runs"])
        told = {run["run_id"]: run for run in json.loads(answer.stdout)}
        assert told.keys() == runs.keys()
        scene.gates.open("two")
