"""F111: two beats, by mistake or for availability: every tick comes twice and does no harm."""

from __future__ import annotations

from celegraph import start_run
from celegraph.beat_schedule import ESCALATE, SWEEP
from tests.support.scene import Scene
from tests.support.waiting import eventually

OVERDUE = 20


def test_twenty_overdue_questions_expire_once_each_and_live_runs_are_left_alone(scene: Scene) -> None:
    scene.worker("w", pool="threads", concurrency=8, queues=["celegraph"])
    asked = [f"asked-{number}" for number in range(OVERDUE)]
    for run_id in asked:
        start_run.delay("deadlined", {"decision": "1h"}, run_id=run_id)
    for run_id in asked:
        scene.await_status(run_id, "waiting")
    scene.gates.close("two")
    live = scene.begin("retried")
    scene.gates.await_arrival("two", live)
    scene.conn.execute(
        "UPDATE approvals SET deadline_at = ledger_now(), next_action_at = ledger_now() WHERE status = 'open'"
    )

    scene.worker("control", queues=["celegraph.control"], concurrency=2)
    beats = [scene.beat("one"), scene.beat("two")]
    for name, number in ((ESCALATE, 2), (SWEEP, 5)):
        eventually(lambda: all(beat.log.count(f"({name})") >= number for beat in beats), within=40)  # noqa: B023
    scene.gates.open("two")

    for run_id in asked:
        assert scene.await_status(run_id, "finished").output["receipt"] == "expired"
        assert scene.kinds(run_id).count("expired") == 1
        assert scene.trail.steps(run_id) == ["last"]
    scene.await_status(live, "finished")
    assert scene.trail.steps(live) == ["one", "two", "pay", "last"]
    assert len(scene.provider.acts_of(live)) == 1
    assert not {"crashed", "fenced"} & set(scene.kinds(live))
