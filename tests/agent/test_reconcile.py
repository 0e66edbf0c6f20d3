"""Doubts of runs that rest: look-ups, and questions about what ended runs have left."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import celegraph
from celegraph import EffectCall, Happened, NotHappened, Unknown, effect
from celegraph.agent.declaration import Found
from celegraph.errors import EffectFailed
from celegraph.tasks.decide import decide
from celegraph.tasks.dispatch import reconcile
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driven, Driver
from tests.support.cancelling import VICTIMS, cancelled
from tests.support.doubtful import distinct_acts, in_doubt
from tests.support.driving import connection
from tests.support.log import Log
from tests.support.shapes import State, chain


def ended_in_doubt(drive: Driver, log: Log, run_id: str, **options: Any) -> Driven:
    """A run that was cancelled while its call was out, whose process then died in it; past the horizon."""
    # A tool of its own name: what two modules declare, no tick looks up.
    run = in_doubt(drive, log, run_id, tool=f"pay for {run_id}", cancelled="customer left", **options)
    assert (run.status, run.run.reason) == ("cancelled", "customer left")
    return run.pass_time("2m")


def is_asked_about_only_after_a_while(run: Driven) -> None:
    reconcile(run.installation)
    assert run.approvals == []

    run.pass_time("30m")
    reconcile(run.installation)

    assert [a.kind for a in run.approvals] == ["doubt"]


def test_what_a_cancelled_run_has_left_in_doubt_is_put_to_a_person_once(
    lonely_drive: Driver, log: Log
) -> None:
    run = ended_in_doubt(lonely_drive, log, "left", in_doubt="retry")
    assert run.approvals == []

    asked = [reconcile(run.installation).asked for _ in range(2)]

    assert asked == [1, 0]

    (question,) = run.approvals
    (act,) = run.effects
    assert (question.kind, question.status, question.idempotency_key) == ("doubt", "open", act.key)
    with using(run.installation):
        assert decide(question.approval_id, "answer", by="anna", value="happened", ref="re_1").won
    assert [(e.status, e.provider_ref) for e in run.effects] == [("sent", "re_1")]
    assert run.status == "cancelled"
    assert log.lines == ["call 1", f"act {act.key}", "died"]


def test_before_the_horizon_nobody_is_asked_about_an_ended_runs_call(lonely_drive: Driver, log: Log) -> None:
    run = in_doubt(lonely_drive, log, "soon", cancelled="customer left")
    assert run.status == "cancelled"

    reconcile(run.installation)

    assert run.approvals == []


@pytest.mark.parametrize(
    ("found", "status"), [(Happened("found", ref="re_1"), "sent"), (NotHappened(), "failed")]
)
def test_a_look_up_settles_what_an_ended_run_has_left_and_nobody_is_asked(
    lonely_drive: Driver, log: Log, found: Found, status: str
) -> None:
    def lookup(call: EffectCall, order: str) -> Found:
        return found

    run = ended_in_doubt(lonely_drive, log, f"looked-up-{status}", in_doubt="reconcile", lookup=lookup)

    reconcile(run.installation)

    assert [e.status for e in run.effects] == [status]
    assert run.approvals == []
    assert (run.status, log.count("call 2")) == ("cancelled", 0)


def test_a_look_ups_no_closes_the_question_about_what_an_ended_run_has_left(
    lonely_drive: Driver, log: Log
) -> None:
    answers: list[Found] = [Unknown("down"), NotHappened()]

    def lookup(call: EffectCall, order: str) -> Found:
        return answers.pop(0)

    run = ended_in_doubt(lonely_drive, log, "told-late", in_doubt="reconcile", lookup=lookup)
    run.pass_time("30m")
    reconcile(run.installation)
    assert [a.status for a in run.approvals] == ["open"]

    reconcile(run.installation)

    assert [a.status for a in run.approvals] == ["rejected"]
    assert [e.status for e in run.effects] == ["failed"]


@pytest.mark.parametrize(("answer", "called"), [("happened", 1), ("did_not_happen", 2)])
def test_the_answer_about_a_failed_runs_call_holds_when_it_is_retried(
    lonely_drive: Driver, log: Log, answer: str, called: int
) -> None:
    run = ended_in_doubt(lonely_drive, log, f"retried-{answer}", acts_first=answer == "happened")
    with connection(run) as conn:
        # As if another branch had failed it; nothing of the product does this to a cancelled run.
        conn.execute("UPDATE runs SET status = 'failed', cancel_requested_at = NULL, error = '{}'")
    reconcile(run.installation)
    (question,) = run.approvals

    with using(run.installation):
        celegraph.retry_run(run.run_id, by="anna")
    run.resume()
    assert (run.status, [a.approval_id for a in run.approvals]) == ("waiting", [question.approval_id])
    run.resume([("answer", answer)])

    assert run.status == "finished"
    assert (log.count("call 1"), log.count("call 2")) == (1, called - 1)
    assert distinct_acts(log) == 1


def test_a_look_up_that_cannot_tell_leaves_an_ended_runs_doubt_to_a_person_after_a_while(
    lonely_drive: Driver, log: Log
) -> None:
    def lookup(call: EffectCall, order: str) -> Found:
        return Unknown("down")

    run = ended_in_doubt(lonely_drive, log, "untold", in_doubt="reconcile", lookup=lookup)
    is_asked_about_only_after_a_while(run)


def test_a_worker_that_does_not_know_the_effect_leaves_the_others_time_to_look_it_up(
    lonely_drive: Driver, log: Log
) -> None:
    run = ended_in_doubt(lonely_drive, log, "unknown")
    with connection(run) as conn:
        conn.execute("UPDATE effects SET tool = 'of another app'")
    is_asked_about_only_after_a_while(run)


def test_what_the_provider_refuses_for_good_is_not_called_again_whoever_said_no_before(
    lonely_drive: Driver, log: Log
) -> None:
    called = asyncio.Event()

    @effect("pay, refused", in_doubt="reconcile", lookup=lambda call: NotHappened(), timeout=0.05)
    async def pay(call: EffectCall) -> str:
        log(f"call {call.attempt}")
        called.set()
        await asyncio.sleep(3600)
        return "receipt"

    async def node(state: State) -> State:
        paying = asyncio.create_task(pay())
        if not log.lines:
            await called.wait()
            raise ValueError("the node does not wait for its call")
        try:
            return {"seen": [await paying]}
        except EffectFailed as failed:
            return {"seen": [str(failed)]}

    run = lonely_drive(chain(node), {}, sleeps=False)
    assert (run.status, [e.status for e in run.effects]) == ("failed", ["pending"])
    run.pass_time("2m")
    assert reconcile(run.installation).did_not_happen == 1

    with using(run.installation):
        assert celegraph.fail_effect(run.effects[0].key, reason="card blocked").status == "failed"
        assert celegraph.fail_effect(run.effects[0].key, reason="said twice").status == "failed"
        celegraph.retry_run(run.run_id, by="anna")
    run.resume()

    assert "card blocked" in run.output["seen"][0]
    assert log.lines == ["call 1"]


# -- look-ups that go wrong ------------------------------------------------------------------------


def test_look_ups_are_asked_side_by_side(lonely_drive: Driver, tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=20)

    def lookup(call: EffectCall, order: str) -> Found:
        both.wait()  # passed only while the other is being asked, too
        return Happened("found")

    runs = [
        ended_in_doubt(lonely_drive, Log(tmp_path / name), name, in_doubt="reconcile", lookup=lookup)
        for name in ("left", "right")
    ]

    assert reconcile(runs[0].installation).happened == 2
    assert [[e.status for e in run.effects] for run in runs] == [["sent"], ["sent"]]


@pytest.mark.parametrize("whom", VICTIMS)
def test_a_look_up_that_ends_in_a_cancellation_of_its_own_making_has_not_answered(
    lonely_drive: Driver, log: Log, whom: str
) -> None:
    """A client whose background task is cancelled with its connection lets the error through."""

    async def lookup(call: EffectCall, order: str) -> Found:
        await cancelled(whom)
        return Happened("never said")

    @effect(f"wire to {whom}", in_doubt="reconcile", lookup=lookup)
    async def wire(call: EffectCall, order: str) -> str:
        log("act")
        raise ConnectionResetError("after the act")

    async def node(state: State) -> State:
        return {"seen": [await wire("o-1")]}

    run = lonely_drive(chain(node), {}, sleeps=False)
    assert (run.status, [e.status for e in run.effects]) == ("ready", ["pending"])

    run.pass_time("2m")
    report = reconcile(run.installation)

    assert (report.happened, report.did_not_happen) == (0, 0)
    assert [e.status for e in run.effects] == ["pending"]
    assert log.lines == ["act"]
