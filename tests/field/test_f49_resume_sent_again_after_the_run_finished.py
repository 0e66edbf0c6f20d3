"""F49: resume sent again after the run finished, with another answer."""

from __future__ import annotations

from langgraph.types import interrupt

from celegraph.tasks.bodies import run_doorbell
from celegraph.tasks.decide import decide
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driver
from tests.support.log import Log
from tests.support.shapes import State, chain


def test_three_more_resumes_enter_nothing_and_change_no_decision(drive: Driver, log: Log) -> None:
    def ask(state: State) -> State:
        log("ask")
        return {"seen": [interrupt("go?")]}

    run = drive(chain(ask), {}, ["approve"])

    def facts() -> object:
        (asked,) = run.approvals
        return (
            run.run.finished_at,
            asked.status,
            asked.decided_by,
            asked.decided_at,
            len(run.events),
            log.lines,
        )

    before = facts()

    with using(run.installation):
        for _ in range(3):
            late = decide(run.approvals[0].approval_id, "reject", by="somebody else")
            assert (late.won, late.status, late.approval.decided_by) == (False, "approved", "test")
            # Returning, not raising, is what acknowledges the message.
            assert run_doorbell(run.installation, run.run_id) == "finished"

    assert facts() == before


def test_a_doorbell_for_a_run_that_does_not_exist_does_nothing(drive: Driver) -> None:
    run = drive("tests.testing.agents:graph", {"n": 1})

    assert run_doorbell(run.installation, "rolled-back") == "unknown run"
