"""State table: pending work that today's graph does not know, and a clock that is behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.base import id as checkpoint_ids
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

from celegraph.agent import clock
from celegraph.testing.driver import Driven, Driver
from tests.support.driving import connection, sweep
from tests.support.shapes import Graph, State, chain

HOUR = 3600 * 10**9  # nanoseconds


def asking(name: str) -> Graph:
    def first(state: State) -> State:
        return {"seen": ["first"]}

    def ask(state: State) -> State:
        return {"seen": [interrupt("go?")]}

    ask.__name__ = name
    return chain(first, ask)


def sending(target: str) -> Graph:
    def ask(state: State) -> State:
        return {"seen": [f"{state['order']} {interrupt('go?')}"]}

    def fan(state: State) -> list[Send]:
        return [Send(target, {"order": "a"}), Send(target, {"order": "b"})]

    def first(state: State) -> State:
        return {"seen": ["first"]}

    graph = StateGraph(State)
    graph.add_node("first", first)
    graph.add_node(target, ask)
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", fan, [target])
    return graph


def joined(with_join: bool) -> Graph:
    """The asking node's triggers change, and with them its task and its interrupt."""

    def first(state: State) -> State:
        return {"seen": ["first"]}

    def other(state: State) -> State:
        return {"seen": ["other"]}

    def ask(state: State) -> State:
        return {"seen": [interrupt("go?")]}

    graph = StateGraph(State)
    graph.add_node("first", first)
    graph.add_node("other", other)
    graph.add_node("ask", ask)
    graph.add_edge(START, "first")
    graph.add_edge(START, "other")
    graph.add_edge(["first", "other"] if with_join else "first", "ask")
    return graph


@pytest.mark.parametrize(
    ("old", "new", "named", "decisions"),
    [
        (lambda: asking("ask"), lambda: asking("ask_manager"), "ask", ["approve"]),
        (lambda: sending("ask"), lambda: sending("ask_manager"), "ask", ["approve", "approve"]),
        (lambda: joined(False), lambda: joined(True), "", ["approve"]),
    ],
    ids=["renamed node", "renamed Send target", "unknown interrupt"],
)
def test_pending_work_that_todays_graph_does_not_know_waits_for_code_and_keeps_the_decision(
    lonely_drive: Driver,
    old: Callable[[], Graph],
    new: Callable[[], Graph],
    named: str,
    decisions: list[str],
) -> None:
    drive = lonely_drive
    asked = drive(old(), {}, run_id="changed")
    assert asked.status == "waiting"

    deployed = drive(new(), {}, run_id="changed").resume(["approve"])

    assert deployed.status == "waiting"
    assert deployed.run.waits_for == "code"
    assert "graph changed" in (deployed.run.reason or "")
    assert named in (deployed.run.reason or "")
    assert deployed.approvals[0].status == "approved"

    waiting_still(deployed)
    sweep(deployed, started=True)  # a worker with the old code has come up
    rolled_back = drive(old(), {}, run_id="changed").resume(decisions[1:])

    assert rolled_back.status == "finished"
    assert len(rolled_back.approvals) == len(decisions)


def waiting_still(run: Driven) -> None:
    """Sweeps without a new worker and doorbells do not move it, nor does another start of the wrong code."""
    sweep(run)
    run.resume()
    assert run.run.waits_for == "code"
    sweep(run, started=True)
    run.resume()
    assert run.run.waits_for == "code"


def test_a_worker_whose_clock_is_behind_goes_on_after_the_newest_checkpoint(
    drive: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _waiting_on_a_host_that_is_an_hour_fast(drive, monkeypatch)
    head = newest_checkpoint(run)

    run.resume(["approve"])

    assert run.output["seen"] == [True]
    assert newest_checkpoint(run) > head


def test_a_checkpoint_that_would_sort_before_its_parent_is_refused_and_hides_no_progress(
    drive: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "catch_up", lambda checkpoint_id: None)
    run = _waiting_on_a_host_that_is_an_hour_fast(drive, monkeypatch)
    head = newest_checkpoint(run)

    run.resume(["approve"])

    assert run.status == "ready"
    assert "ClockBehind" in (run.run.reason or "")
    assert newest_checkpoint(run) == head

    real = time.time_ns
    with monkeypatch.context() as synchronised:
        synchronised.setattr(time, "time_ns", lambda: real() + 2 * HOUR)
        run.pass_time("1h").resume()
    assert run.output["seen"] == [True]


def _waiting_on_a_host_that_is_an_hour_fast(drive: Driver, monkeypatch: pytest.MonkeyPatch) -> Driven:
    real = time.time_ns
    monkeypatch.setattr(checkpoint_ids, "_last_v6_timestamp", None)  # put back when the test is over

    def node(state: State) -> State:
        return {"seen": [interrupt("go?")]}

    with monkeypatch.context() as fast:
        fast.setattr(time, "time_ns", lambda: real() + HOUR)
        run = drive(chain(node), {}, sleeps=False)
    checkpoint_ids._last_v6_timestamp = None  # another process has no such memory
    return run


def newest_checkpoint(run: Driven) -> Any:
    with connection(run) as conn:
        row = conn.execute(
            "SELECT max(checkpoint_id) AS id FROM checkpoints WHERE thread_id = %s", (run.run_id,)
        ).fetchone()
    assert row is not None
    return row["id"]
