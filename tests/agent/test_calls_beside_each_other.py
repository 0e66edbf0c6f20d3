"""Calls that race have no order: they are told apart by what they do, not by counting."""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from celegraph import EffectCall, effect
from celegraph.testing.driver import Driver
from tests.support.log import Log
from tests.support.shapes import State, chain


def _acts(log: Log) -> Counter[str]:
    return Counter(line for line in log.lines if line.startswith("act"))


def test_equal_and_unequal_calls_in_asyncio_happen_once_each_whatever_their_order(
    drive: Driver, log: Log
) -> None:
    @effect("pay")
    async def pay(call: EffectCall, x: int) -> int:
        log(f"act {x}")
        return x

    async def node(state: State) -> State:
        log("node")
        orders = [[3, 1, 1, 2], [2, 1, 3, 1]]
        got = await asyncio.gather(*(pay(x) for x in orders[log.count("node") - 1]))
        got += [await pay(7), await pay(7)]
        if log.count("node") == 1:
            raise ConnectionResetError("after the effects")
        return {"seen": got}

    run = drive(chain(node), {})

    assert run.output["seen"] == [2, 1, 3, 1, 7, 7]
    assert _acts(log) == Counter({"act 1": 2, "act 7": 2, "act 2": 1, "act 3": 1})


def test_calls_in_threads_of_the_node_s_own_happen_once_each_whatever_their_order(
    drive: Driver, log: Log
) -> None:
    @effect("pay")
    def pay(call: EffectCall, x: int) -> int:
        log(f"act {x}")
        return x

    def in_threads(orders: list[int]) -> list[int]:
        jobs = [(contextvars.copy_context(), x) for x in orders]
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda job: job[0].run(pay, job[1]), jobs))

    def node(state: State) -> State:
        log("node")
        got = [pay(9), *in_threads([5, 6, 5] if log.count("node") == 1 else [6, 5, 5])]
        if log.count("node") == 1:
            raise ConnectionResetError("after the effects")
        return {"seen": got}

    run = drive(chain(node), {})

    assert run.status == "finished"
    assert _acts(log) == Counter({"act 5": 2, "act 6": 1, "act 9": 1})


def test_a_new_call_beside_recorded_ones_is_no_drift_when_calls_have_no_order(
    drive: Driver, log: Log
) -> None:
    @effect("pay")
    async def pay(call: EffectCall, x: int) -> int:
        log(f"act {x}")
        return x

    async def node(state: State) -> State:
        log("node")
        wanted = [1, 2] if log.count("node") == 1 else [3, 2, 1]
        got = await asyncio.gather(*(pay(x) for x in wanted))
        if log.count("node") == 1:
            raise ConnectionResetError("after the effects")
        return {"seen": got}

    run = drive(chain(node), {})

    assert run.output["seen"] == [3, 2, 1]
    assert _acts(log) == Counter(["act 1", "act 2", "act 3"])


class _Model(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def _asking(*orders: str) -> AIMessage:
    calls: list[Any] = [
        {"name": "pay_tool", "args": {"order": o}, "id": f"call-{o}", "type": "tool_call"} for o in orders
    ]
    return AIMessage("", tool_calls=calls)


def _tool(log: Log) -> Any:
    @effect("pay")
    def pay(call: EffectCall, cents: int) -> int:
        log(f"act {call.key}")
        return cents

    @tool
    def pay_tool(order: str) -> str:
        """Pay an order in two halves."""
        log(f"tool {order}")
        pay(1)
        pay(1)
        if log.count(f"tool {order}") == 1:
            raise ConnectionResetError("after both halves")
        return "ok"

    return pay_tool


def test_tools_of_create_agent_pay_once_per_tool_call_and_half(drive: Driver, log: Log) -> None:
    model = _Model(messages=iter([_asking("a", "b"), AIMessage("done")]))

    run = drive(create_agent(model, [_tool(log)]), {"messages": [{"role": "user", "content": "pay"}]})

    assert run.status == "finished"
    assert sorted(_acts(log).values()) == [1, 1, 1, 1]


def test_parallel_calls_of_one_tool_node_pay_once_per_tool_call_and_half(drive: Driver, log: Log) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [_asking("c", "d")]})
    graph.add_node("tools", ToolNode([_tool(log)], handle_tool_errors=False))
    graph.add_edge(START, "model")
    graph.add_edge("model", "tools")

    run = drive(graph, {"messages": []})

    assert run.status == "finished"
    assert sorted(_acts(log).values()) == [1, 1, 1, 1]


@pytest.mark.parametrize("branch", [0, 1])
def test_f50_one_branch_fails_the_other_had_succeeded(drive: Driver, log: Log, branch: int) -> None:
    """F50: One branch fails, the other had succeeded."""

    @effect("pay")
    def pay(call: EffectCall) -> str:
        log("act")
        return call.key

    def paying(state: State) -> State:
        return {"seen": [pay()]}

    def failing(state: State) -> State:
        log("b")
        if log.count("b") == 1:
            raise ConnectionResetError("the first try")
        return {"seen": ["b"]}

    graph = StateGraph(State)
    for node in (paying, failing) if branch else (failing, paying):
        graph.add_node(node.__name__, node)
        graph.add_edge(START, node.__name__)

    run = drive(graph, {})

    assert run.status == "finished"
    assert log.count("act") == 1
