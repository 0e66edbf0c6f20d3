"""State table: interrupts with and without decisions, refused decisions."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel

import celegraph
from celegraph.errors import DecisionRefused
from celegraph.testing.driver import Driver
from tests.support.driving import connection, event, kinds
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain, parallel
from tests.support.waiting import eventually


def two_askers(log: Log) -> Graph:
    def left(state: State) -> State:
        log("left")
        return {"seen": [f"left {interrupt('left?')}"]}

    def right(state: State) -> State:
        log("right")
        return {"seen": [f"right {interrupt('right?')}"]}

    def after(state: State) -> State:
        log("after")
        return {"seen": ["after"]}

    return parallel(left, right, then=after)


def test_a_run_with_undecided_interrupts_waits_and_a_doorbell_leaves_it_untouched(
    drive: Driver, log: Log
) -> None:
    run = drive(two_askers(log), {})
    before = (run.run.updated_at, len(run.events), log.lines)

    run.resume()

    assert run.status == "waiting"
    assert (run.run.updated_at, len(run.events), log.lines) == before
    assert sorted(a.prompt for a in run.approvals) == ["left?", "right?"]


def test_a_decision_for_one_of_two_interrupts_moves_that_branch_only(drive: Driver, log: Log) -> None:
    run = drive(two_askers(log), {})
    first = run.approvals[0].prompt.rstrip("?")

    run.resume(["approve"])

    assert run.status == "waiting"
    assert [a.status for a in run.approvals] == ["approved", "open"]

    run.resume(["reject"])

    assert run.status == "finished"
    other = {"left": "right", "right": "left"}[first]
    assert sorted(run.output["seen"]) == sorted([f"{first} True", f"{other} False", "after"])
    assert log.count(first) == 2  # asked, answered; not entered a third time for its sibling's answer
    assert log.count("after") == 1


def test_the_second_interrupt_of_a_node_gets_its_own_answer(drive: Driver) -> None:
    def ask(state: State) -> State:
        return {"seen": [interrupt("first?"), interrupt("second?")]}

    run = drive(chain(ask), {}, [("answer", "one"), ("answer", "two")])

    assert run.output["seen"] == ["one", "two"]
    assert [a.prompt for a in run.approvals] == ["first?", "second?"]


def test_an_interrupt_in_a_subgraph_is_asked_and_answered(drive: Driver) -> None:
    def inner(state: State) -> State:
        return {"seen": [interrupt("inside?")]}

    def outer(state: State) -> State:
        return {"seen": ["outer"]}

    graph = chain(outer)
    graph.add_node("sub", chain(inner).compile())
    graph.add_edge("outer", "sub")

    run = drive(graph, {}, [("answer", "yes")])

    assert run.status == "finished"
    assert run.output["seen"][-1] == "yes"


class Amount(BaseModel):
    cents: int


def test_an_answer_the_graph_refuses_is_asked_again_with_the_reason_and_never_loops(
    drive: Driver, log: Log
) -> None:
    def ask(state: State) -> State:
        log("ask")
        amount = interrupt("how much?", response_schema=Amount)
        return {"n": amount.cents}

    run = drive(chain(ask), {}, [("answer", {"cents": "many"})])

    assert run.status == "waiting"
    refused, again = run.approvals
    assert (refused.status, again.status) == ("approved", "open")
    assert refused.interrupt_id == again.interrupt_id
    assert again.prompt.startswith("how much?")
    assert "refused the last answer" in again.prompt
    entered = log.count("ask")

    run.resume()
    assert log.count("ask") == entered

    run.resume([("answer", {"cents": 1999})])
    assert run.output["n"] == 1999


def _interrupts_stored(drive: Driver, run_id: str) -> bool:
    with psycopg.connect(drive.ledger.database_url) as conn:
        conn.execute("SELECT set_config('search_path', %s, false)", (drive.ledger.schema,))
        query = "SELECT 1 FROM checkpoint_writes WHERE thread_id = %s AND channel = '__interrupt__'"
        return conn.execute(query, (run_id,)).fetchone() is not None


def test_an_undecided_interrupt_beside_a_retryable_failure_is_open_while_the_run_sleeps(
    drive: Driver, log: Log
) -> None:
    def ask(state: State) -> State:
        log("ask")
        return {"seen": [f"asked {interrupt('go?')}"]}

    def flaky(state: State) -> State:
        log("flaky")
        if log.count("flaky") == 1:
            # Failing earlier would cancel the sibling before it has asked.
            eventually(lambda: _interrupts_stored(drive, run_id))
            raise ConnectionResetError("the provider went away")
        return {"seen": ["flaky"]}

    run_id = f"beside-{uuid.uuid4()}"
    run = drive(parallel(ask, flaky), {}, run_id=run_id, sleeps=False)

    assert run.status == "ready"
    assert run.run.wake_at is not None
    assert [a.status for a in run.approvals] == ["open"]
    assert log.count("flaky") == 1

    run.resume(["approve"])  # the decision wakes it, long before the back-off has passed

    assert run.status in ("finished", "ready")
    assert "woken" in kinds(run)
    run.pass_time("1h").resume()
    assert sorted(run.output["seen"]) == ["asked True", "flaky"]


def test_a_retry_that_is_due_runs_beside_an_undecided_interrupt(drive: Driver, log: Log) -> None:
    def ask(state: State) -> State:
        return {"seen": [f"asked {interrupt('go?')}"]}

    def flaky(state: State) -> State:
        log("flaky")
        if log.count("flaky") == 1:
            raise ConnectionResetError("the provider went away")
        return {"seen": ["flaky"]}

    run = drive(parallel(ask, flaky), {})

    assert run.status == "waiting"
    assert log.count("flaky") == 2
    assert [a.status for a in run.approvals] == ["open"]
    assert sorted(run.resume(["reject"]).output["seen"]) == ["asked False", "flaky"]
    assert log.count("flaky") == 2


def test_an_answer_is_kept_when_its_node_then_fails_and_is_not_given_to_the_next_question(
    drive: Driver, log: Log
) -> None:
    def ask(state: State) -> State:
        first = interrupt("first?")
        log("between")
        if log.count("between") == 1:
            raise ConnectionResetError("between two questions")
        return {"seen": [first, interrupt("second?")]}

    run = drive(chain(ask), {}, [("answer", "one")])

    assert run.status == "waiting"
    assert [(a.prompt, a.status) for a in run.approvals] == [("first?", "approved"), ("second?", "open")]
    assert run.resume([("answer", "two")]).output["seen"] == ["one", "two"]


def test_an_answer_in_a_subgraph_is_kept_when_its_node_then_fails(drive: Driver, log: Log) -> None:
    def ask(state: State) -> State:
        first = interrupt("first?")
        log("between")
        if log.count("between") == 1:
            raise ConnectionResetError("between two questions")
        return {"seen": [first, interrupt("second?")]}

    graph = StateGraph(State)
    graph.add_node("sub", chain(ask).compile())
    graph.add_edge(START, "sub")

    run = drive(graph, {}, [("answer", "one")])

    assert [(a.prompt, a.status) for a in run.approvals] == [("first?", "approved"), ("second?", "open")]
    assert run.resume([("answer", "two")]).output["seen"] == ["one", "two"]


def test_an_expired_question_goes_on_as_not_approved_and_is_nobodys_no(drive: Driver) -> None:
    def ask(state: State) -> State:
        policy = celegraph.ApprovalPolicy(deadline="2h")
        decision = celegraph.ask_approval(prompt="go?", policy=policy)
        return {"seen": [decision.approved, decision.expired, decision.by]}

    run = drive(chain(ask), {}, ["expire"])

    assert run.output["seen"] == [False, True, None]
    assert run.approvals[0].status == "expired"
    assert event(run, "expired")["on_timeout"] == "reject"


def test_a_question_that_expires_under_the_cancel_policy_ends_the_run(drive: Driver) -> None:
    def ask(state: State) -> None:
        policy = celegraph.ApprovalPolicy(deadline="2h", on_timeout="cancel")
        celegraph.ask_approval(prompt="go?", policy=policy)

    run = drive(chain(ask), {}, ["expire"])

    assert run.status == "cancelled"


def test_ask_approval_works_in_async_nodes_and_tells_who_decided(drive: Driver) -> None:
    async def ask(state: State) -> State:
        decision = celegraph.ask_approval(prompt="go?")
        return {"seen": [decision.status, decision.by, decision.note]}

    run = drive(chain(ask), {}, [{"verb": "reject", "by": "anna", "note": "too much"}])

    assert run.output["seen"] == ["rejected", "anna", "too much"]


@pytest.mark.parametrize(
    "decision",
    [
        {"verb": "perhaps"},
        {"verb": "edit", "args": {"n": 1}},
        {"verb": "reject", "value": 1},
        {"verb": "approve", "by": ""},
        {"verb": "answer", "value": float("nan")},
    ],
)
def test_a_decision_that_does_not_fit_is_refused_and_the_question_stays_open(
    drive: Driver, decision: dict[str, Any]
) -> None:
    def ask(state: State) -> None:
        interrupt("go?")

    run = drive(chain(ask), {})

    with pytest.raises((DecisionRefused, ValueError)):
        run.resume([decision])
    assert [a.status for a in run.approvals] == ["open"]


def test_answers_of_a_cancelled_run_are_closed_with_it(drive: Driver) -> None:
    def ask(state: State) -> None:
        interrupt("go?")

    run = drive(chain(ask), {})
    with connection(run) as conn:
        from celegraph.ledger.runs import cancel

        assert cancel(conn, run.run_id, "not needed") == "cancelled"

    assert run.status == "cancelled"
    assert [a.status for a in run.approvals] == ["cancelled"]
