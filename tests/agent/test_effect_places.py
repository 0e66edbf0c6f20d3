"""Which call is this?  Slots, loops, fan-outs, branches, subgraphs and attempts."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, Send, interrupt

from celegraph import EffectCall, effect
from celegraph.agent.effect import EffectFunction
from celegraph.testing.driver import Driver
from tests.support.driving import taken_over
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain, parallel

Pay = EffectFunction[[str], str]


@pytest.fixture
def pay(log: Log) -> Pay:
    """Writes "act WHAT" and returns its key."""

    @effect("pay")
    def pay(call: EffectCall, what: str) -> str:
        log(f"act {what}")
        return call.key

    return pay


ids = count()


@pytest.fixture
def run_id() -> str:
    """The same run for the process that dies and the one that goes on."""
    return f"places-{next(ids)}"


def quick() -> RetryPolicy:
    """LangGraph's own retry in place: three attempts, no pause."""
    return RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False, retry_on=LookupError)


def test_two_equal_calls_in_one_node_are_two_and_stay_two_when_the_node_runs_again(
    drive: Driver, log: Log, pay: Pay, run_id: str
) -> None:
    def node(state: State) -> State:
        keys = [pay("x"), pay("x")]
        log("node")
        if log.count("node") == 1:
            die()
        return {"seen": keys}

    process_dies(lambda: drive(chain(node), {}, run_id=run_id))
    run = taken_over(drive(chain(node), {}, run_id=run_id))

    assert log.count("act x") == 2
    assert len(set(run.output["seen"])) == 2


def test_a_re_run_that_makes_its_calls_in_another_order_performs_none_again(
    drive: Driver, log: Log, pay: Pay, run_id: str
) -> None:
    def node(state: State) -> State:
        log("node")
        order = ["a", "b"] if log.count("node") == 1 else ["b", "a"]
        keys = {what: pay(what) for what in order}
        if log.count("node") == 1:
            die()
        return {"seen": [keys["a"], keys["b"]]}

    process_dies(lambda: drive(chain(node), {}, run_id=run_id))
    run = taken_over(drive(chain(node), {}, run_id=run_id))

    assert sorted(line for line in log.lines if "act" in line) == ["act a", "act b"]
    assert [a.key for a in run.effects] == run.output["seen"]


def test_a_named_slot_keeps_the_recorded_call_when_the_words_change(
    drive: Driver, log: Log, pay: Pay
) -> None:
    def node(state: State) -> State:
        log("node")
        key = pay.slot("memo")(f"wording {log.count('node')}")
        if log.count("node") == 1:
            raise ConnectionResetError("after the effect")
        return {"seen": [key]}

    run = drive(chain(node), {})

    assert run.status == "finished"
    assert [line for line in log.lines if "act" in line] == ["act wording 1"]
    assert run.output["seen"] == [run.effects[0].key]


def test_a_named_slot_can_refuse_other_words(drive: Driver, log: Log) -> None:
    @effect("pay", on_drift="fail")
    def strict(call: EffectCall, what: str) -> None:
        log(f"act {what}")

    def node(state: State) -> None:
        log("node")
        strict.slot("memo")(f"wording {log.count('node')}")
        raise ConnectionResetError("after the effect")

    run = drive(chain(node), {})

    assert "EffectDrift" in run.run.error["type"]
    assert [line for line in log.lines if "act" in line] == ["act wording 1"]


def test_each_round_of_a_loop_is_a_call_of_its_own(drive: Driver, log: Log, pay: Pay) -> None:
    def node(state: State) -> State:
        return {"n": state["n"] + 1, "seen": [pay("x")]}

    def again(state: State) -> str:
        return "node" if state["n"] < 3 else END

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", again, ["node", END])

    run = drive(graph, {"n": 0})

    assert log.count("act x") == 3
    assert len(set(run.output["seen"])) == 3


def fan_out(node: Any) -> Graph:
    def first(state: State) -> State:
        return {"n": 0}

    def fan(state: State) -> list[Send]:
        return [Send("node", {"order": "x"}) for _ in range(3)]

    graph = StateGraph(State)
    graph.add_node("first", first)
    graph.add_node("node", node)
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", fan, ["node"])
    return graph


def test_each_send_of_a_fan_out_is_a_call_of_its_own_also_after_a_death(
    drive: Driver, log: Log, pay: Pay, run_id: str
) -> None:
    def node(state: State) -> State:
        key = pay(state["order"])
        log("node")
        if log.count("node") == 3:
            die()
        return {"seen": [key]}

    process_dies(lambda: drive(fan_out(node), {}, run_id=run_id))
    run = taken_over(drive(fan_out(node), {}, run_id=run_id))

    assert log.count("act x") == 3
    assert len(set(run.output["seen"])) == 3


def test_parallel_branches_with_equal_calls_are_two(drive: Driver, log: Log, pay: Pay) -> None:
    def left(state: State) -> State:
        return {"seen": [pay("x")]}

    def right(state: State) -> State:
        return {"seen": [pay("x")]}

    run = drive(parallel(left, right), {})

    assert log.count("act x") == 2
    assert len(set(run.output["seen"])) == 2


def test_parallel_async_calls_in_one_node_are_apart_and_not_repeated(drive: Driver, log: Log) -> None:
    import asyncio

    @effect("pay")
    async def pay(call: EffectCall, what: str) -> str:
        await asyncio.sleep(0.01)
        log(f"act {what}")
        return call.key

    async def node(state: State) -> State:
        keys = await asyncio.gather(pay("a"), pay("b"), pay("a"))
        log("node")
        if log.count("node") == 1:
            raise ConnectionResetError("after the effects")
        return {"seen": list(keys)}

    run = drive(chain(node), {})

    assert sorted(line for line in log.lines if "act" in line) == ["act a", "act a", "act b"]
    assert len(set(run.output["seen"])) == 3


def test_a_subgraph_as_a_node_and_its_parent_have_calls_of_their_own(
    drive: Driver, log: Log, pay: Pay
) -> None:
    def inner(state: State) -> State:
        return {"seen": [pay("x")]}

    graph = StateGraph(State)
    graph.add_node("one", chain(inner).compile())
    graph.add_node("two", chain(inner).compile())
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")

    drive(graph, {})

    assert log.count("act x") == 2


def test_a_subgraph_called_twice_in_one_node_makes_two_calls_also_after_a_death(
    drive: Driver, log: Log, pay: Pay, run_id: str
) -> None:
    def inner(state: State) -> State:
        return {"seen": [pay("x")]}

    sub = chain(inner).compile()

    def outer(state: State) -> State:
        keys = [sub.invoke({})["seen"][0], sub.invoke({})["seen"][0]]
        log("outer")
        if log.count("outer") == 1:
            die()
        return {"seen": keys}

    process_dies(lambda: drive(chain(outer), {}, run_id=run_id))
    run = taken_over(drive(chain(outer), {}, run_id=run_id))

    assert log.count("act x") == 2
    assert len(set(run.output["seen"])) == 2


def test_three_attempts_of_a_retry_policy_share_one_call(drive: Driver, log: Log, pay: Pay) -> None:
    def node(state: State) -> State:
        key = pay("x")
        log("node")
        if log.count("node") < 3:
            raise LookupError("not yet")
        return {"seen": [key]}

    run = drive(chain(node, retry=quick()), {})

    assert (log.count("act x"), log.count("node")) == (1, 3)
    assert len(run.effects) == 1


def test_three_attempts_with_the_effect_in_a_subgraph_called_from_the_node_share_one_call(
    drive: Driver, log: Log, pay: Pay
) -> None:
    def inner(state: State) -> State:
        return {"seen": [pay("x")]}

    sub = chain(inner).compile()

    def outer(state: State) -> State:
        found = sub.invoke({})["seen"]
        log("outer")
        if log.count("outer") < 3:
            raise LookupError("not yet")
        return {"seen": found}

    run = drive(chain(outer, retry=quick()), {})

    assert (log.count("act x"), log.count("outer")) == (1, 3)
    assert len(run.effects) == 1


def test_three_attempts_in_an_async_node_with_an_awaited_subgraph_share_one_call(
    drive: Driver, log: Log, pay: Pay
) -> None:
    def inner(state: State) -> State:
        return {"seen": [pay("x")]}

    sub = chain(inner).compile()

    async def outer(state: State) -> State:
        found = [(await sub.ainvoke({}))["seen"][0], (await sub.ainvoke({}))["seen"][0]]
        log("outer")
        if log.count("outer") < 3:
            raise LookupError("not yet")
        return {"seen": found}

    run = drive(chain(outer, retry=quick()), {})

    assert (log.count("act x"), log.count("outer")) == (2, 3)
    assert len(run.effects) == 2


def test_three_attempts_of_a_task_share_one_call(drive: Driver, log: Log, pay: Pay) -> None:
    @task(retry_policy=quick())  # type: ignore[arg-type]
    def step(what: str) -> str:
        key = pay(what)
        log("step")
        if log.count("step") < 3:
            raise LookupError("not yet")
        return key

    def outer(state: State) -> State:
        return {"seen": [step("x").result()]}  # type: ignore[arg-type]

    run = drive(chain(outer), {})

    assert (log.count("act x"), log.count("step")) == (1, 3)
    assert run.output["seen"] == [run.effects[0].key]


def test_tasks_in_a_node_of_a_subgraph_have_calls_of_their_own(drive: Driver, log: Log, pay: Pay) -> None:
    @task
    def deepest(what: str) -> str:
        return pay(what)

    @task
    def step(what: str) -> str:
        return deepest(what).result()

    def inner(state: State) -> State:
        log("inner")
        keys = [step("x").result(), step("x").result(), pay("x")]
        if log.count("inner") == 1:
            raise ConnectionResetError("after the effects")
        return {"seen": keys}

    sub = chain(inner).compile()

    def outer(state: State) -> State:
        return {"seen": sub.invoke({})["seen"]}

    run = drive(chain(outer), {})

    assert log.count("act x") == 3
    assert run.output["seen"] == [a.key for a in run.effects]


def test_an_effect_in_a_task_whose_node_is_retried_in_place_is_refused_with_the_remedy(
    drive: Driver, log: Log, pay: Pay
) -> None:
    @task
    def step(what: str) -> str:
        return pay(what)

    def outer(state: State) -> None:
        step("x").result()

    run = drive(chain(outer, retry=quick()), {})

    assert run.status == "failed"
    assert "put the policy on the @task" in run.run.error["message"]
    assert log.lines == []


def test_tasks_of_an_entrypoint_make_one_call_each_also_after_a_death(
    drive: Driver, log: Log, pay: Pay, run_id: str
) -> None:
    @task
    def step(what: str) -> str:
        return pay(what)

    @entrypoint()
    def body(n: int) -> list[str]:
        keys = [step("x").result() for _ in range(n)]
        log("body")
        if log.count("body") == 1:
            die()
        return keys

    process_dies(lambda: drive(body, 2, run_id=run_id))
    run = taken_over(drive(body, 2, run_id=run_id))

    assert log.count("act x") == 2
    assert run.output == [a.key for a in run.effects]


def test_an_effect_before_an_interrupt_is_not_repeated_by_the_answer(
    drive: Driver, log: Log, pay: Pay
) -> None:
    def node(state: State) -> State:
        log("node")
        before = pay("before")
        answer = interrupt("go?")
        return {"seen": [before, answer, pay("after")]}

    run = drive(chain(node), {}, ["approve"])

    assert run.status == "finished"
    assert log.lines == ["node", "act before", "node", "act after"]
