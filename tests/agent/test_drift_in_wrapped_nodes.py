"""A node's own calls are counted, however LangGraph and LangChain run its function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import TimeoutPolicy

from celegraph import EffectCall, effect
from celegraph.testing.driver import Driver
from tests.support.log import Log
from tests.support.shapes import State

Function = Callable[[Any], Any]


def _graph(node: Any, **options: Any) -> Any:
    graph: Any = StateGraph(State)
    graph.add_node("node", node, **options)
    return graph.add_edge(START, "node")


def _in_a_task(function: Function) -> Any:
    async def paying(given: Any) -> Any:
        return await function(given)

    within_time: Any = task(timeout=20.0)
    in_time = within_time(paying)

    @entrypoint()
    async def graph(given: Any) -> Any:
        return await in_time(given)

    return graph


def _waited_for(function: Function) -> Any:
    async def node(state: State) -> Any:
        return await asyncio.wait_for(function(state), 20)  # a task of its own up to Python 3.11

    return _graph(node)


BUILDS: dict[str, Callable[[Function], Any]] = {
    "plain": _graph,
    "timeout": lambda function: _graph(function, timeout=20.0),
    "idle timeout": lambda function: _graph(function, timeout=TimeoutPolicy(idle_timeout=20.0)),
    "RunnableLambda": lambda function: _graph(RunnableLambda(function)),
    "@task with a timeout": _in_a_task,
    "wait_for": _waited_for,
}


@pytest.mark.parametrize("build", BUILDS)
def test_a_re_run_that_wants_to_pay_another_amount_asks(drive: Driver, log: Log, build: str) -> None:
    @effect(f"pay {build}")
    async def pay(call: EffectCall, cents: int) -> int:
        log(f"act {cents}")
        return cents

    async def node(state: Any) -> Any:
        log("node")
        paid = await pay(100 * log.count("node"))  # a model words it differently
        if log.count("node") == 1:
            raise ConnectionResetError("after the payment")
        return {"seen": [paid]}

    run = drive(BUILDS[build](node), {})

    assert log.lines == ["node", "act 100", "node"]
    assert [a.kind for a in run.approvals] == ["drift"]


def test_the_same_for_a_plain_function_in_a_runnable(drive: Driver, log: Log) -> None:
    @effect("pay plainly")
    def pay(call: EffectCall, cents: int) -> int:
        log(f"act {cents}")
        return cents

    def node(state: State) -> State:
        log("node")
        paid = pay(100 * log.count("node"))
        if log.count("node") == 1:
            raise ConnectionResetError("after the payment")
        return {"seen": [paid]}

    run = drive(_graph(RunnableLambda(node)), {})

    assert log.lines == ["node", "act 100", "node"]
    assert [a.kind for a in run.approvals] == ["drift"]
