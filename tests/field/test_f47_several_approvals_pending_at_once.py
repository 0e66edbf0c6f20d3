"""F47: several approvals pending at once; no answer is crossed, no branch pays for another."""

from __future__ import annotations

from celegraph import EffectCall, ask_approval, effect
from celegraph.ledger.approvals import Approval
from celegraph.testing.driver import Driver, Plain
from tests.support.driving import taken_over
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain, parallel


def branches(log: Log, *, dies: bool) -> Graph:
    @effect("pay", requires_approval=True)
    def pay(call: EffectCall, what: str) -> None:
        log(f"pay {what}")

    def decide(what: str) -> State:
        decision = ask_approval(pay.bind(what), prompt=what)
        if decision.approved:
            pay(what)
        return {"seen": [f"{what} {decision.status}"]}

    def left(state: State) -> State:
        return decide("L")

    def right(state: State) -> State:
        found = decide("R")
        if dies and not log.count("died"):
            log("died")
            die()
        return found

    return parallel(left, right)


def approve_r(question: Approval) -> Plain:
    return "approve" if question.prompt == "R" else "reject"


def test_r_approved_then_the_worker_dies_then_l_rejected(drive: Driver, log: Log) -> None:
    """Whichever question is older gets its own answer; the process dies after R has paid."""
    drive(branches(log, dies=True), {}, run_id="f47")
    process_dies(lambda: drive(branches(log, dies=True), {}, [approve_r] * 2, run_id="f47"))
    run = taken_over(drive(branches(log, dies=True), {}, run_id="f47"))
    while run.status == "waiting":
        run.resume([approve_r])

    assert sorted(run.output["seen"]) == ["L rejected", "R approved"]
    assert [line for line in log.lines if "pay" in line] == ["pay R"]
    assert {a.prompt: a.status for a in run.approvals} == {"L": "rejected", "R": "approved"}


def test_two_interrupts_in_one_subgraph_task_keep_their_own_answers(drive: Driver) -> None:
    from langgraph.types import interrupt

    def inner(state: State) -> State:
        return {"seen": [interrupt("one?"), interrupt("two?")]}

    sub = chain(inner).compile()

    def outer(state: State) -> State:
        return {"seen": sub.invoke({})["seen"]}

    run = drive(chain(outer), {}, [("answer", 1), ("answer", 2)])

    assert run.output["seen"] == [1, 2]
