"""Every stage of a run's life, its process killed right before or right after the stage is durable.

The oracle is the provider's own log; our ledger is only asked whether it agrees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from celegraph import decide
from celegraph.errors import RunNotFound
from tests.crash.places import STATEMENTS, Place, standing_at
from tests.support.process import kill_and_await
from tests.support.scene import Scene
from tests.support.wire import Side, Statement, Wire, ours
from tests.support.workers import Worker


@dataclass
class Stage:
    """One worker for runs and one for the clock; all they say to the database passes the wire."""

    scene: Scene
    wire: Wire
    runs: Worker
    control: Worker

    def pids(self) -> list[int]:
        """The pool children of both."""
        return [*self.runs.children(), *self.control.children()]


@pytest.fixture(scope="module")
def stage(
    module_database_url: str, module_broker_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """Shared by the whole file: workers cost seconds to start, and a killed child is replaced."""
    directory = tmp_path_factory.mktemp("matrix")
    with Wire(module_database_url) as wire, Scene(module_database_url, module_broker_url, directory) as scene:
        env = scene.env(database_url=wire.url)
        runs = scene.worker("runs", queues=["celegraph"], env=env, start=False)
        control = scene.control(env=env, start=False)
        for worker in (runs, control):
            worker.launch()
        for worker in (runs, control):
            worker.await_ready()
        yield Stage(scene, wire, runs, control)


def assert_paid_once(scene: Scene, run_id: str) -> None:
    """The run has finished, the provider has acted once, and the ledger knows exactly that."""
    run = scene.await_status(run_id, "finished")
    (act,) = scene.provider.acts_of(run_id)
    (row,) = scene.effects(run_id)
    assert (row.idempotency_key, row.status) == (act.key, "sent")
    assert run.output["receipt"] == act.ref == row.provider_ref


# -- the worker's processes ------------------------------------------------------------------------

_IN_ASYNC_NODES = [place for place in STATEMENTS if place.name.endswith(("reserve", "record", " checkpoint"))]
_CASES = [("retried", place) for place in STATEMENTS] + [("awaited", place) for place in _IN_ASYNC_NODES]


@pytest.mark.parametrize(("agent", "place"), [pytest.param(a, p, id=f"{p.name}, {a}") for a, p in _CASES])
def test_a_child_killed_at_any_durability_boundary_pays_once(stage: Stage, agent: str, place: Place) -> None:
    """And the paying node is never entered again once it is durable."""
    scene, run_id = stage.scene, f"{agent} {place.name}"
    with standing_at(place, scene, stage.wire, agent, run_id, [stage.runs]) as pid:
        kill_and_await(pid)

    assert_paid_once(scene, run_id)
    assert scene.trail.steps(run_id).count("pay") in place.entered
    assert scene.kinds(run_id).count("crashed") <= 1


@pytest.mark.parametrize(
    ("agent", "gate"),
    [
        ("retried", "two"),
        ("looked_up", "pay:call"),
        ("retried", "pay:acted"),
        ("looked_up", "pay:acted"),
        ("retried", "pay:recorded"),
        ("retried", "last"),
    ],
)
def test_a_whole_worker_killed_around_the_call_pays_once(stage: Stage, agent: str, gate: str) -> None:
    scene = stage.scene
    scene.gates.close(gate)
    run_id = scene.begin(agent)
    scene.gates.await_arrival(gate, run_id)

    stage.runs.kill_main()
    scene.gates.open(gate)
    stage.runs.start()

    assert_paid_once(scene, run_id)
    assert scene.kinds(run_id).count("crashed") == 1


def test_killed_after_the_provider_acted_a_person_is_asked_and_nothing_is_sent_twice(stage: Stage) -> None:
    scene = stage.scene
    scene.gates.close("pay:acted")
    run_id = scene.begin("asked")
    kill_and_await(scene.gates.await_arrival("pay:acted", run_id).pid)
    scene.gates.open("pay:acted")

    question = scene.question(run_id)

    (act,) = scene.provider.acts_of(run_id)
    assert (question.kind, question.idempotency_key) == ("doubt", act.key)
    decide(question.approval_id, "answer", by="anna", value="happened")
    scene.await_status(run_id, "finished")
    assert len(scene.provider.acts_of(run_id)) == 1


# -- the caller's process --------------------------------------------------------------------------


def test_a_caller_killed_before_the_admission_has_started_nothing(stage: Stage) -> None:
    scene = stage.scene
    with stage.wire.hold(ours("runs", "admit"), "before") as hold:
        caller = scene.caller("start", "retried", "never", env=scene.env(database_url=stage.wire.url))
        hold.await_arrival(lambda: [caller.pid])
        caller.kill()

    with pytest.raises(RunNotFound):
        scene.run("never")


def test_a_caller_killed_between_admission_and_doorbell_has_started_the_run(stage: Stage) -> None:
    scene = stage.scene
    with stage.wire.hold(ours("runs", "admit"), "after") as hold:
        caller = scene.caller("start", "retried", "admitted", env=scene.env(database_url=stage.wire.url))
        hold.await_arrival(lambda: [caller.pid])
        caller.kill()

    assert_paid_once(scene, "admitted")


@pytest.mark.parametrize(
    ("statement", "side", "decided"),
    [
        pytest.param(ours("approvals", "decide"), "before", False, id="before the decision"),
        pytest.param(ours("approvals", "decide"), "after", True, id="between decision and wake"),
        pytest.param(ours("sweep", "wake_one"), "after", True, id="between wake and doorbell"),
    ],
)
def test_a_decision_counts_from_its_commit_whoever_dies(
    stage: Stage, statement: Statement, side: Side, decided: bool
) -> None:
    scene = stage.scene
    run_id = scene.begin("approved")
    question = scene.question(run_id)
    with stage.wire.hold(statement, side) as hold:
        caller = scene.caller(
            "decide", question.approval_id, "approve", env=scene.env(database_url=stage.wire.url)
        )
        hold.await_arrival(lambda: [caller.pid])
        caller.kill()

    if not decided:
        assert scene.question(run_id) == question or scene.question(run_id).status == "open"
        decide(question.approval_id, "approve", by="anna")
    assert_paid_once(scene, run_id)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_child_killed_around_the_settle_of_a_question_asks_it_once(stage: Stage, side: Side) -> None:
    scene = stage.scene
    scene.gates.close("ask")
    run_id = scene.begin("approved")
    scene.gates.await_arrival("ask", run_id)
    with stage.wire.hold(ours("leases", "settle"), side) as hold:
        scene.gates.open("ask")
        kill_and_await(hold.await_arrival(stage.runs.children))

    question = scene.question(run_id)
    decide(question.approval_id, "approve", by="anna")

    assert_paid_once(scene, run_id)
    assert scene.kinds(run_id).count("asked") == 1


# -- the sweep's process ---------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_sweep_killed_around_the_count_of_a_death_counts_it_once(stage: Stage, side: Side) -> None:
    scene = stage.scene
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    with stage.wire.hold(ours("leases", "recover"), side) as hold:
        kill_and_await(scene.gates.await_arrival("pay", run_id).pid)
        kill_and_await(hold.await_arrival(stage.pids))
    scene.gates.open("pay")

    assert_paid_once(scene, run_id)
    assert scene.kinds(run_id).count("crashed") == 1


def test_a_sweep_killed_between_the_booking_and_the_doorbell_loses_no_run(stage: Stage) -> None:
    scene = stage.scene
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    with stage.wire.hold(ours("leases", "recover"), "before") as found:
        kill_and_await(scene.gates.await_arrival("pay", run_id).pid)
        found.await_arrival(stage.pids)
        with stage.wire.hold(ours("sweep", "due_rings"), "after") as booked:
            found.release()
            kill_and_await(booked.await_arrival(stage.pids))
    scene.gates.open("pay")

    assert_paid_once(scene, run_id)
