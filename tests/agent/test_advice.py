"""Effects in odd places happen once, and the run says where they would be plainer."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from celegraph import EffectCall, ask_approval, effect
from celegraph.agent.effect import EffectFunction
from celegraph.testing.driver import Driven, Driver
from tests.support.log import Log
from tests.support.shapes import Graph, State, add, chain, name_of

Pay = EffectFunction[[str], str]


@pytest.fixture
def pay(log: Log) -> Pay:
    """Writes "act WHAT"."""

    @effect("pay")
    def pay(call: EffectCall, what: str) -> str:
        log(f"act {what}")
        return what

    return pay


def advice(run: Driven) -> list[tuple[str, str]]:
    """Node and subject of what the run advises."""
    return [(e.data["node"], e.data["about"]) for e in run.events if e.kind == "advice"]


def test_one_effect_at_the_end_of_its_node_needs_no_advice(drive: Driver, pay: Pay) -> None:
    def ask(state: State) -> State:
        return {"seen": [ask_approval(pay.bind("a"), prompt="Pay?").approved]}

    def node(state: State) -> State:
        return {"seen": [pay("a")]}

    assert advice(drive(chain(ask, node), {}, ["approve"])) == []


def test_two_effects_in_one_node_are_advised_once_per_run_and_node(drive: Driver, log: Log, pay: Pay) -> None:
    def node(state: State) -> None:
        pay("a")
        pay("b")
        log("node")
        if log.count("node") == 1:
            raise ConnectionResetError("once more")

    def again(state: State) -> None:
        pay("c")
        pay("d")

    run = drive(chain(node, again), {})

    assert [line for line in log.lines if line != "node"] == ["act a", "act b", "act c", "act d"]
    assert sorted(advice(run)) == [("again", "several"), ("node", "several")]
    (first, *_) = [e.data["text"] for e in run.events if e.kind == "advice"]
    assert first.startswith("node 'node' makes more than one effect; each happens once")


@pytest.mark.parametrize("plain", [True, False])
def test_an_effect_before_a_question_is_advised(drive: Driver, log: Log, pay: Pay, plain: bool) -> None:
    def node(state: State) -> State:
        pay("a")
        answer = interrupt("go on?") if plain else ask_approval(prompt="go on?").approved
        return {"seen": [answer]}

    run = drive(chain(node), {}, ["approve"])

    assert log.lines == ["act a"]
    assert advice(run) == [("node", "before a question")]


def test_an_effect_before_a_question_in_a_subgraph_names_the_inner_node(drive: Driver, pay: Pay) -> None:
    def inner(state: State) -> State:
        pay("a")
        return {"seen": [interrupt("go on?")]}

    graph = StateGraph(State)
    graph.add_node("outer", chain(inner).compile())
    graph.add_edge(START, "outer")

    assert advice(drive(graph, {}, ["approve"])) == [("inner", "before a question")]


def routed(node: Any, router: Any) -> Graph:
    def last(state: State) -> None: ...

    graph = StateGraph(State)
    add(graph, node)
    add(graph, last)
    graph.add_edge(START, name_of(node))
    graph.add_conditional_edges(name_of(node), router, ["last", END])
    return graph


def test_an_effect_in_a_router_happens_once_and_is_advised(drive: Driver, log: Log, pay: Pay) -> None:
    def node(state: State) -> None:
        log("node")

    def router(state: State, to: str) -> str:
        pay("a")
        log("router")
        if log.count("router") == 1:
            raise ConnectionResetError("once more")
        return to

    run = drive(routed(node, functools.partial(router, to="last")), {})

    assert run.status == "finished"
    assert log.count("router") == 2
    assert log.count("act a") == 1
    assert advice(run) == [("node", "router")]


def test_an_async_effect_in_an_async_router_happens_once_and_is_advised(drive: Driver, log: Log) -> None:
    @effect("pay")
    async def pay(call: EffectCall) -> None:
        log("act")

    async def node(state: State) -> None: ...

    class Router:
        async def __call__(self, state: State) -> str:
            await pay()
            return END

    run = drive(routed(node, Router()), {})

    assert log.lines == ["act"]
    assert advice(run) == [("node", "router")]
