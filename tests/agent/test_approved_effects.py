"""requires_approval: an approval binds exactly one call and pays once."""

from __future__ import annotations

import pytest

from celegraph import EffectCall, ask_approval, effect
from celegraph.agent.effect import EffectFunction
from celegraph.errors import ApprovalRejected
from celegraph.testing.driver import Driver
from tests.support.driving import taken_over
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import State, chain

Refund = EffectFunction[..., str]


@pytest.fixture
def refund(log: Log) -> Refund:
    """Writes "refund ORDER CENTS"."""

    @effect("refund", requires_approval=True)
    def refund(call: EffectCall, order: str, cents: int) -> str:
        log(f"refund {order} {cents}")
        return f"receipt {cents}"

    return refund


def test_a_call_reached_without_an_approval_asks_and_happens_once_after_the_yes(
    drive: Driver, log: Log, refund: Refund
) -> None:
    def node(state: State) -> State:
        return {"seen": [refund("o-1", 1999)]}

    run = drive(chain(node), {})
    assert run.status == "waiting"
    assert (log.lines, run.effects) == ([], [])
    (question,) = run.approvals
    assert (question.kind, question.tool) == ("effect", "refund")

    run.resume(["approve"])

    assert run.output["seen"] == ["receipt 1999"]
    assert log.lines == ["refund o-1 1999"]
    assert run.approvals[0].effect_key == run.effects[0].key


def test_a_call_that_was_asked_for_in_the_node_happens_without_a_second_question(
    drive: Driver, log: Log, refund: Refund
) -> None:
    def node(state: State) -> State:
        decision = ask_approval(refund.bind("o-1", 1999), prompt="Refund 19.99 EUR?")
        return {"seen": [refund(**decision.args)] if decision.approved else []}

    run = drive(chain(node), {}, ["approve"])

    assert run.output["seen"] == ["receipt 1999"]
    assert len(run.approvals) == 1
    assert run.approvals[0].args_hash is not None


def test_one_approval_does_not_pay_for_two_equal_calls(drive: Driver, log: Log, refund: Refund) -> None:
    def node(state: State) -> State:
        decision = ask_approval(refund.bind("o-1", 1999), prompt="Refund?")
        return {"seen": [refund(**decision.args), refund(**decision.args)]}

    run = drive(chain(node), {}, ["approve"])

    assert run.status == "waiting"
    assert log.lines == ["refund o-1 1999"]
    assert [a.status for a in run.approvals] == ["approved", "open"]

    run.resume(["approve"])
    assert log.lines == ["refund o-1 1999"] * 2
    assert len({a.effect_key for a in run.approvals}) == 2


def test_a_rejected_call_raises_and_is_not_made(drive: Driver, log: Log, refund: Refund) -> None:
    def node(state: State) -> State:
        try:
            return {"seen": [refund("o-1", 1999)]}
        except ApprovalRejected as rejected:
            return {"seen": [rejected.status]}

    run = drive(chain(node), {}, ["reject"])

    assert run.output["seen"] == ["rejected"]
    assert (log.lines, run.effects) == ([], [])


def test_edited_arguments_are_bound_anew_and_are_what_happens(
    drive: Driver, log: Log, refund: Refund
) -> None:
    def node(state: State) -> State:
        decision = ask_approval(refund.bind("o-1", 1999), prompt="Refund?")
        return {"seen": [refund(**decision.args)]}

    run = drive(chain(node), {}, [("edit", {"cents": 500})])

    assert log.lines == ["refund o-1 500"]
    assert run.status == "finished"


def test_an_edit_does_not_pay_for_the_arguments_it_replaced(drive: Driver, log: Log, refund: Refund) -> None:
    def node(state: State) -> State:
        ask_approval(refund.bind("o-1", 1999), prompt="Refund?")
        return {"seen": [refund("o-1", 1999)]}

    run = drive(chain(node), {}, [("edit", {"cents": 500})])

    assert run.status == "waiting"
    assert log.lines == []
    assert run.approvals[-1].args == {"order": "o-1", "cents": 1999}


def test_a_swallowed_interrupt_cannot_pay(drive: Driver, log: Log, refund: Refund) -> None:
    def node(state: State) -> State:
        try:
            ask_approval(refund.bind("o-1", 1999), prompt="Refund?")
        except Exception:
            log("swallowed")
        return {"seen": [refund("o-1", 1999)]}

    run = drive(chain(node), {})

    assert run.status == "waiting"
    assert log.lines == ["swallowed"]
    assert run.effects == []


def test_f63_what_was_approved_is_not_what_runs(drive: Driver, log: Log, refund: Refund) -> None:
    """F63: an approval of refund 50 pays neither refund 500 nor another tool's 50."""

    @effect("transfer", requires_approval=True)
    def transfer(call: EffectCall, order: str, cents: int) -> str:
        log(f"transfer {order} {cents}")
        return "receipt"

    def larger(state: State) -> None:
        ask_approval(refund.bind("o-1", 50), prompt="Refund?")
        refund("o-1", 500)

    def other(state: State) -> None:
        ask_approval(refund.bind("o-1", 50), prompt="Refund?")
        transfer("o-1", 50)

    for node in (larger, other):
        run = drive(chain(node), {}, ["approve"])
        assert run.status == "waiting"
        assert [a.status for a in run.approvals] == ["approved", "open"]
        run.resume(["reject"])
        assert run.status == "failed"
    assert log.lines == []


def test_a_question_reached_again_with_other_arguments_is_asked_again(
    drive: Driver, log: Log, refund: Refund
) -> None:
    def node(state: State) -> State:
        log("node")
        amount = 50 if log.count("node") == 1 else 500
        decision = ask_approval(refund.bind("o-1", amount), prompt="Refund?")
        return {"seen": [refund(**decision.args)]}

    run = drive(chain(node), {}, ["approve"])

    assert run.status == "waiting"
    assert [a.args for a in run.approvals] == [{"order": "o-1", "cents": 50}, {"order": "o-1", "cents": 500}]
    first, again = (a.prompt for a in run.approvals)
    assert first == "Refund?"
    assert again.startswith("Refund?\n\nAsked again")
    assert '"cents": 50' in again

    run.resume(["approve"])
    assert [line for line in log.lines if line != "node"] == ["refund o-1 500"]


def test_an_approved_call_that_died_before_its_record_is_not_paid_by_a_second_approval(
    drive: Driver, log: Log
) -> None:
    @effect("refund", requires_approval=True, in_doubt="retry")
    def refund(call: EffectCall, order: str) -> str:
        log(f"act {call.key}")
        if call.attempt == 1:
            die()
        return "receipt"

    def node(state: State) -> State:
        return {"seen": [refund("o-1")]}

    drive(chain(node), {}, run_id="approved-dies")
    process_dies(lambda: drive(chain(node), {}, ["approve"], run_id="approved-dies"))
    run = taken_over(drive(chain(node), {}, run_id="approved-dies"))

    assert run.output["seen"] == ["receipt"]
    assert len(set(log.lines)) == 1
    assert len(run.approvals) == 1
