"""F46: code before interrupt() runs again; an effect there happens once a round all the same."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from celegraph import EffectCall, effect
from celegraph.testing.driver import Driver
from tests.support.log import Log
from tests.support.shapes import State, chain


def test_a_notification_before_the_question_is_sent_once(drive: Driver, log: Log) -> None:
    @effect("notify_slack")
    def notify(call: EffectCall, text: str) -> None:
        log(f"notify {text}")

    @effect("pay")
    def pay(call: EffectCall) -> None:
        log("pay")

    def node(state: State) -> None:
        log("node")
        notify("please look")
        if interrupt("pay?"):
            pay()

    run = drive(chain(node), {})
    run.resume()
    run.resume(["approve"])

    assert log.lines == ["node", "notify please look", "node", "pay"]


def test_a_loop_of_three_rounds_notifies_once_a_round(drive: Driver, log: Log) -> None:
    @effect("notify_slack")
    def notify(call: EffectCall, round: int) -> None:
        log(f"notify {round}")

    @effect("pay")
    def pay(call: EffectCall) -> None:
        log("pay")

    def ask(state: State) -> State:
        notify(state["n"])
        interrupt(f"round {state['n']}?")
        return {"n": state["n"] + 1}

    def finish(state: State) -> None:
        pay()

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_node("finish", finish)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", lambda s: "ask" if s["n"] < 3 else "finish", ["ask", "finish"])
    graph.add_edge("finish", END)

    run = drive(graph, {"n": 0}, ["approve"] * 3)

    assert run.status == "finished"
    assert log.lines == ["notify 0", "notify 1", "notify 2", "pay"]


def test_several_questions_of_one_node_in_a_loop_notify_once_each(drive: Driver, log: Log) -> None:
    @effect("notify_slack")
    def notify(call: EffectCall, round: int) -> None:
        log(f"notify {round}")

    def node(state: State) -> State:
        answers = []
        for n in range(3):
            notify(n)
            answers.append(interrupt(f"round {n}?"))
        return {"seen": answers}

    run = drive(chain(node), {}, [("answer", n) for n in range(3)])

    assert run.output["seen"] == [0, 1, 2]
    assert log.lines == ["notify 0", "notify 1", "notify 2"]
