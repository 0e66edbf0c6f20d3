"""Pause, resume, cancel and deadline, whatever the run does just then."""

from __future__ import annotations

from datetime import timedelta

import pytest

from celegraph import (
    cancel_run,
    decide,
    explain_run,
    pause_run,
    resolve_effect,
    resume_run,
    start_run,
)
from celegraph.errors import RunMoved
from tests.support.process import kill_and_await
from tests.support.scene import Scene
from tests.support.waiting import eventually


def at_work(scene: Scene, agent: str = "steps", gate: str = "two") -> str:
    """A run whose node stands at the gate, in a worker."""
    scene.gates.close(gate)
    run_id = scene.begin(agent)
    scene.gates.await_arrival(gate, run_id)
    return run_id


def in_doubt(scene: Scene) -> str:
    """A run whose worker died after the provider had acted; a person is asked."""
    run_id = at_work(scene, "asked", "pay:acted")
    kill_and_await(scene.gates.await_arrival("pay:acted", run_id).pid)
    scene.gates.open("pay:acted")
    assert scene.question(run_id).kind == "doubt"
    scene.await_status(run_id, "waiting")
    return run_id


# -- pause -----------------------------------------------------------------------------------------


def test_a_run_at_work_is_paused_after_its_step_and_goes_on_there(scene: Scene) -> None:
    worker = scene.worker("w", beat=True)
    run_id = at_work(scene)

    assert pause_run(run_id, reason="audit") == "running"
    assert "it is paused at its next step, as asked" in explain_run(run_id).sentence
    eventually(lambda: "run is to be paused" in worker.log)
    scene.gates.open("two")

    run = scene.await_status(run_id, "paused")
    assert (run.reason, scene.trail.steps(run_id)) == ("audit", ["one", "two"])
    assert "audit" in explain_run(run_id).sentence
    scene.await_status(scene.begin("steps"), "finished")  # while the sweep leaves the paused one alone
    assert resume_run(run_id, by="anna") == "ready"
    scene.await_status(run_id, "finished")
    assert scene.trail.steps(run_id) == ["one", "two", "three", "four", "last"]
    assert scene.run(run_id).pause_requested_at is None


def test_a_pause_that_is_taken_back_in_time_changes_nothing(scene: Scene) -> None:
    scene.worker("w", beat=True)
    run_id = at_work(scene)
    assert pause_run(run_id) == "running"

    assert resume_run(run_id) == "running"

    scene.gates.open("two")
    scene.await_status(run_id, "finished")
    assert "paused" not in scene.kinds(run_id)
    assert scene.trail.steps(run_id) == ["one", "two", "three", "four", "last"]


def test_a_run_whose_owner_dies_before_it_could_pause_is_paused_all_the_same(scene: Scene) -> None:
    scene.worker("w", beat=True)
    run_id = at_work(scene)
    assert pause_run(run_id, reason="audit") == "running"

    kill_and_await(scene.gates.await_arrival("two", run_id).pid)

    run = scene.await_status(run_id, "paused")
    assert (run.reason, scene.trail.steps(run_id)) == ("audit", ["one", "two"])
    scene.gates.open("two")
    resume_run(run_id)
    scene.await_status(run_id, "finished")


def test_an_end_wins_over_a_pause(scene: Scene) -> None:
    scene.worker("w", beat=True)
    run_id = at_work(scene, gate="last")
    pause_run(run_id)
    scene.gates.open("last")

    scene.await_status(run_id, "finished")
    with pytest.raises(RunMoved, match="it is finished"):
        pause_run(run_id)


def test_an_answer_to_a_paused_run_is_kept_and_taken_in_when_it_goes_on(scene: Scene) -> None:
    scene.worker("w", beat=True)
    run_id = scene.begin("approved")
    question = scene.question(run_id)
    scene.await_status(run_id, "waiting")
    assert pause_run(run_id) == "paused"

    decide(question.approval_id, "approve", by="anna")

    scene.await_status(scene.begin("steps"), "finished")
    assert scene.run(run_id).status == "paused"
    assert scene.provider.acts_of(run_id) == []
    resume_run(run_id)
    scene.await_status(run_id, "finished")
    assert len(scene.provider.acts_of(run_id)) == 1


def test_a_doubt_of_a_paused_run_is_answered_and_counts_when_it_goes_on(scene: Scene) -> None:
    scene.worker("w", beat=True)
    run_id = in_doubt(scene)
    assert pause_run(run_id) == "paused"
    (act,) = scene.provider.acts_of(run_id)

    resolve_effect(act.key, "happened", ref=act.ref, by="anna")

    assert scene.run(run_id).status == "paused"
    assert [effect.status for effect in scene.effects(run_id)] == ["sent"]
    resume_run(run_id)
    scene.await_status(run_id, "finished")
    assert len(scene.provider.acts_of(run_id)) == 1


# -- cancel and deadline ---------------------------------------------------------------------------


def test_a_cancelled_runs_doubt_is_still_answered(scene: Scene) -> None:
    scene.worker("w", beat=True)
    run_id = in_doubt(scene)
    question = scene.question(run_id)
    (act,) = scene.provider.acts_of(run_id)

    assert cancel_run(run_id, reason="customer left") == "cancelled"
    assert scene.question(run_id) == question or scene.question(run_id).status == "open"
    decide(question.approval_id, "answer", by="anna", value="happened")

    assert [effect.status for effect in scene.effects(run_id)] == ["sent"]
    assert (scene.run(run_id).status, scene.run(run_id).reason) == ("cancelled", "customer left")
    assert scene.provider.acts_of(run_id) == [act]


def test_a_cancelled_waiting_run_closes_its_question_and_a_paused_one_can_be_cancelled(scene: Scene) -> None:
    scene.worker("w", beat=True)
    run_id = scene.begin("approved")
    question = scene.question(run_id)
    scene.await_status(run_id, "waiting")
    pause_run(run_id)

    assert cancel_run(run_id) == "cancelled"

    decided = decide(question.approval_id, "approve", by="anna")
    assert (decided.won, decided.status) == (False, "cancelled")
    assert scene.provider.acts_of(run_id) == []


def _deadline_passes(scene: Scene, run_id: str) -> None:
    scene.conn.execute("UPDATE runs SET deadline_at = ledger_now() WHERE run_id = %s", [run_id])


@pytest.mark.parametrize("how", ["deadline passed", "customer left"])
def test_a_run_at_work_ends_after_its_step_and_tells_why(scene: Scene, how: str) -> None:
    worker = scene.worker("w", beat=True)
    run_id = at_work(scene)

    if how == "deadline passed":
        _deadline_passes(scene, run_id)
        eventually(lambda: scene.run(run_id).cancel_requested_at)
        assert "for its deadline has passed" in explain_run(run_id).sentence
    else:
        assert cancel_run(run_id, reason=how) == "running"
    eventually(lambda: "run is to be cancelled" in worker.log)
    scene.gates.open("two")

    run = scene.await_status(run_id, "cancelled")
    assert (run.reason, scene.trail.steps(run_id)) == (how, ["one", "two"])


def test_a_cancelled_run_whose_owner_dies_first_ends_and_tells_why(scene: Scene) -> None:
    scene.worker("w", beat=True)
    run_id = at_work(scene)
    assert cancel_run(run_id, reason="customer left") == "running"

    kill_and_await(scene.gates.await_arrival("two", run_id).pid)

    assert scene.await_status(run_id, "cancelled").reason == "customer left"


@pytest.mark.parametrize("paused", [False, True], ids=["waiting", "paused"])
def test_a_deadline_ends_a_run_at_rest_and_its_question(scene: Scene, paused: bool) -> None:
    scene.worker("w", beat=True)
    start_run.delay("approved", {"cents": 1}, run_id="r-1", deadline=timedelta(hours=1))
    question = scene.question("r-1")
    scene.await_status("r-1", "waiting")
    if paused:
        pause_run("r-1")

    _deadline_passes(scene, "r-1")

    run = scene.await_status("r-1", "cancelled")
    assert run.reason == "deadline passed"
    assert decide(question.approval_id, "approve", by="anna").status == "cancelled"


def test_a_deadline_leaves_a_doubt_open_to_be_answered(scene: Scene) -> None:
    scene.worker("w", beat=True)
    run_id = in_doubt(scene)
    _deadline_passes(scene, run_id)

    scene.await_status(run_id, "cancelled")
    assert scene.question(run_id).kind == "doubt"
    (act,) = scene.provider.acts_of(run_id)
    resolve_effect(act.key, "happened", ref=act.ref, by="anna")
    assert [effect.status for effect in scene.effects(run_id)] == ["sent"]
