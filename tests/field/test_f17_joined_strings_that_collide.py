"""F17: joined strings that collide; a row of another tool or run is never this effect's result."""

from __future__ import annotations

from celegraph import EffectCall, effect
from celegraph.testing.driver import Driver
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain


def paying(log: Log, node_name: str, tool: str) -> Graph:
    @effect(tool)
    def pay(call: EffectCall) -> str:
        log(f"{call.run_id} {tool} {call.key}")
        return call.key

    def node(state: State) -> State:
        return {"seen": [pay()]}

    node.__name__ = node_name
    return chain(node)


def test_runs_steps_and_tools_whose_names_join_alike_have_their_own_acts(drive: Driver, log: Log) -> None:
    cases = [("a:b", "c", "pay"), ("a", "b:c", "pay"), ("a:b:c", "pay", "x:y"), ("a:b:c:pay", "x", "y")]

    keys = []
    for run_id, node, tool in cases:
        try:
            run = drive(paying(log, node, tool), {}, run_id=run_id)
        except ValueError:  # LangGraph itself refuses ":" in a node's name
            continue
        keys += [act.key for act in run.effects]

    assert len(keys) == len(set(keys)) >= 3
    assert len(log.lines) == len(keys)


def test_another_tool_in_the_same_place_is_another_act(drive: Driver, log: Log) -> None:
    @effect("pay")
    def pay(call: EffectCall, order: str) -> str:
        log("pay")
        return "paid"

    @effect("ship")
    def ship(call: EffectCall, order: str) -> str:
        log("ship")
        return "shipped"

    def node(state: State) -> State:
        return {"seen": [pay("o-1"), ship("o-1")]}

    assert drive(chain(node), {}).output["seen"] == ["paid", "shipped"]
    assert log.lines == ["pay", "ship"]
