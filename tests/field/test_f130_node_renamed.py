"""F130: node renamed."""

from __future__ import annotations

from typing import Any

from langgraph.types import interrupt

from celegraph import EffectCall, effect
from celegraph.tasks.explain import explain_run
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driver
from tests.support.driving import sweep
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain


def test_f130_node_renamed(lonely_drive: Driver, log: Log) -> None:
    @effect("pay")
    def pay(call: EffectCall) -> str:
        log("act")
        return "receipt"

    def graph(name: str) -> Graph:
        def gate(state: State) -> Any:
            return {"seen": [interrupt("pay?")]}

        def paying(state: State) -> Any:
            return {"seen": [pay()]}

        gate.__name__ = name
        return chain(gate, paying)

    lonely_drive(graph("gate"), {}, run_id="f130")
    deployed = lonely_drive(graph("approval_gate"), {}, run_id="f130").resume(["approve"])

    assert (deployed.status, deployed.run.waits_for) == ("waiting", "code")
    assert log.count("act") == 0
    with using(deployed.installation):
        said = explain_run("f130").sentence
    assert "graph changed: gate is pending and today's graph does not know it" in said
    assert "its decisions are kept" in said

    sweep(deployed, started=True)
    run = lonely_drive(graph("gate"), {}, run_id="f130").resume()

    assert run.output["seen"] == [True, "receipt"]
    assert log.count("act") == 1
