"""Work that today's graph would drop without a word is noticed: the run waits, names it, keeps decisions, and
goes on when the code is back."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

from celegraph import EffectCall, effect
from celegraph.tasks.control import retry_run
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driven, Driver
from tests.support.driving import kinds, sweep, taken_over
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import State, chain

RUN = "changed"


class Wide(TypedDict, total=False):
    """The state before a deploy."""

    seen: Annotated[list[Any], operator.add]
    note: str


class Narrow(TypedDict, total=False):
    """The state after it."""

    seen: Annotated[list[Any], operator.add]


def stopped(run: Driven, *names: str) -> Driven:
    """Doorbells, sweeps and new workers with the wrong code change nothing."""
    for _ in range(2):
        sweep(run, started=True)
        run.resume()
    assert run.status == "waiting"
    assert run.run.waits_for == "code"
    assert str(run.run.reason).startswith("graph changed: ")
    for name in names:
        assert name in str(run.run.reason)
    return run


def back(drive: Driver, graph: Any) -> Driven:
    """The old code is there again, and a worker with it has come up."""
    run = drive(graph, {}, run_id=RUN)
    sweep(run, started=True)
    return run.resume()


def ask(state: Any) -> Any:
    return {"seen": [interrupt("go?")]}


def beside(schema: Any, update: Any, *, name: str = "other", goes_to: Any = None) -> Any:
    """A node that has finished, beside one that asks."""
    graph: Any = StateGraph(schema)
    graph.add_node("ask", ask)
    graph.add_node(name, lambda state: update)
    graph.add_edge(START, "ask")
    graph.add_edge(START, name)
    if goes_to is not None:
        goes_to(graph)
    return graph


def after(name: str) -> Callable[[Any], None]:
    def build(graph: Any) -> None:
        graph.add_node(name, lambda state: {"seen": [name]})
        graph.add_edge("other", name)

    return build


def sends_to(name: str) -> Callable[[Any], None]:
    def build(graph: Any) -> None:
        graph.add_node(name, lambda state: {"seen": [name]})
        graph.add_conditional_edges("other", lambda state: [Send(name, {})], [name])

    return build


def joins(*starts: str) -> Callable[[Any], None]:
    """`last` comes when all of these are done; `late` takes a step longer."""

    def build(graph: Any) -> None:
        graph.add_node("late", ask)
        graph.add_edge("other", "late")
        graph.add_node("last", lambda state: {"seen": ["last"]})
        graph.add_edge(list(starts), "last")

    return build


CHANGES: list[tuple[str, Callable[[], Any], Callable[[], Any], str, list[Any]]] = [
    (
        "a field of the state that a finished node has written",
        lambda: beside(Wide, {"note": "paid"}),
        lambda: beside(Narrow, {}),
        "a value for the state's 'note'",
        [True],
    ),
    (
        "the node after a finished one",
        lambda: beside(State, {}, goes_to=after("mail")),
        lambda: beside(State, {}, goes_to=after("letter")),
        "mail",
        [True, "mail"],
    ),
    (
        "the target of a finished node's Send",
        lambda: beside(State, {}, goes_to=sends_to("mail")),
        lambda: beside(State, {}, goes_to=sends_to("letter")),
        "mail",
        [True, "mail"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "named", "seen"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES]
)
def test_what_a_finished_node_has_left_for_a_part_that_is_gone_stops_the_run(
    lonely_drive: Driver,
    old: Callable[[], Any],
    new: Callable[[], Any],
    named: str,
    seen: list[Any],
) -> None:
    lonely_drive(old(), {}, run_id=RUN)

    deployed = lonely_drive(new(), {}, run_id=RUN).resume(["approve"])

    stopped(deployed, named)
    assert deployed.approvals[0].status == "approved"
    run = back(lonely_drive, old())
    assert run.status == "finished"
    assert run.output["seen"] == seen
    assert run.output.get("note", "paid") == "paid"


def test_a_join_that_is_half_done_and_gone_stops_the_run(lonely_drive: Driver) -> None:
    def graph(*starts: str) -> Any:
        return beside(State, {}, goes_to=joins(*starts))

    lonely_drive(graph("other", "late"), {}, ["approve"], run_id=RUN)

    deployed = lonely_drive(graph("ask", "late"), {}, run_id=RUN).resume(["approve"])

    stopped(deployed, "last")
    assert back(lonely_drive, graph("other", "late")).output["seen"][-1] == "last"


@pytest.mark.parametrize("called", [False, True], ids=["as a node", "called by a node"])
@pytest.mark.parametrize("stateful", [None, True], ids=["per call", "with its own memory"])
def test_a_renamed_node_in_a_subgraph_stops_the_run(
    lonely_drive: Driver, log: Log, called: bool, stateful: bool | None
) -> None:
    def graph(name: str) -> Any:
        inner = StateGraph(State)
        inner.add_node(name, ask)
        inner.add_edge(START, name)
        compiled = inner.compile(checkpointer=stateful)

        def call(state: State) -> Any:
            return {"seen": compiled.invoke({"order": "o-1"}).get("seen", [])}

        def done(state: State) -> Any:
            log("done")
            return {"seen": ["done"]}

        outer = StateGraph(State)
        outer.add_node("inner", call if called else compiled)
        outer.add_node("done", done)
        outer.add_edge(START, "inner")
        outer.add_edge("inner", "done")
        return outer

    lonely_drive(graph("gate"), {}, run_id=RUN)

    deployed = lonely_drive(graph("approval_gate"), {}, run_id=RUN).resume(["approve"])

    stopped(deployed, "gate")
    assert log.lines == []
    run = back(lonely_drive, graph("gate"))
    assert run.status == "finished"
    assert True in run.output["seen"]
    assert log.lines == ["done"]


def test_a_subgraph_that_failed_and_whose_caller_goes_on_is_no_dropped_work(lonely_drive: Driver) -> None:
    def broken(state: State) -> Any:
        raise LookupError("no such order")

    inner = chain(broken).compile()

    def call(state: State) -> Any:
        try:
            inner.invoke({})
        except LookupError:
            return {"seen": ["without it", interrupt("go?")]}

    run = lonely_drive(chain(call), {}, ["approve"])

    assert run.output["seen"] == ["without it", True]


def test_a_renamed_entrypoint_that_has_paid_stops_the_run_instead_of_paying_under_its_new_name(
    lonely_drive: Driver, log: Log
) -> None:
    @effect("pay", in_doubt="retry")
    def pay(call: EffectCall, order: str) -> str:
        log(f"act {call.key}")
        return "receipt"

    def body(given: Any) -> Any:
        receipt = pay("o-1")
        if not log.count("died"):
            log("died")
            die()
        return receipt

    def named(name: str) -> Any:
        def renamed(given: Any) -> Any:
            return body(given)

        renamed.__name__ = name
        return entrypoint()(renamed)

    process_dies(lambda: lonely_drive(named("refund"), {}, run_id=RUN))
    deployed = taken_over(lonely_drive(named("refund_order"), {}, run_id=RUN))

    stopped(deployed, "refund")
    assert back(lonely_drive, named("refund")).output == "receipt"
    assert len(log.lines) == 2


def test_a_renamed_task_that_has_paid_stops_the_run_instead_of_paying_under_its_new_name(
    lonely_drive: Driver, log: Log
) -> None:
    @effect("pay", in_doubt="retry")
    def pay(call: EffectCall, order: str) -> str:
        log(f"act {call.key}")
        return "receipt"

    def named(name: str) -> Any:
        def body(order: str) -> str:
            return pay(order)

        body.__name__ = name
        paying = task(body)

        @entrypoint()
        def refund(given: Any) -> Any:
            receipts = [paying("o-1").result(), paying("o-1").result()]
            interrupt("fine?")
            return receipts

        return refund

    lonely_drive(named("pay_order"), {}, run_id=RUN)
    deployed = lonely_drive(named("pay_refund"), {}, run_id=RUN).resume(["approve"])

    stopped(deployed, "@task 'pay_order' has acted where @task 'pay_refund' is called now")
    assert back(lonely_drive, named("pay_order")).output == ["receipt", "receipt"]
    assert len(log.lines) == 2


def test_a_field_of_the_state_that_is_gone_is_told_and_does_not_stop_the_run(lonely_drive: Driver) -> None:
    def graph(schema: Any) -> Any:
        built = StateGraph(schema)
        built.add_node("first", lambda state: {"note": "old"} if schema is Wide else {})
        built.add_node("ask", ask)
        built.add_edge(START, "first")
        built.add_edge("first", "ask")
        return built

    lonely_drive(graph(Wide), {}, run_id=RUN)
    run = lonely_drive(graph(Narrow), {}, run_id=RUN).resume(["approve"])

    assert run.output == {"seen": [True]}
    told = [e.data["text"] for e in run.events if e.kind == "advice"]
    assert any("'note' holds a value and today's graph does not have the field" in text for text in told)


def test_an_inserted_node_a_removed_edge_and_an_interrupt_that_is_gone_stop_nothing(
    lonely_drive: Driver,
) -> None:
    def before(state: State) -> Any:
        return {"seen": ["before"]}

    def inserted(state: State) -> Any:
        return {"seen": ["inserted"]}

    def asking(state: State) -> Any:
        return {"seen": [interrupt("go?")]}

    def asks_no_more(state: State) -> Any:
        return {"seen": ["as a matter of course"]}

    asks_no_more.__name__ = "asking"
    lonely_drive(chain(before, asking), {}, run_id=RUN)

    run = lonely_drive(chain(before, inserted, asks_no_more), {}, run_id=RUN).resume(["approve"])

    assert run.output["seen"] == ["before", "as a matter of course"]
    assert run.approvals[0].consumed_at is not None


def test_a_reducer_that_fails_fails_the_run_and_the_old_one_takes_it_up(
    lonely_drive: Driver, log: Log
) -> None:
    def picky(old: list[Any], new: list[Any]) -> list[Any]:
        raise LookupError("no such reducer")

    def graph(reducer: Any) -> Any:
        def node(state: Any) -> Any:
            log("node")
            return {"seen": ["node"]}

        schema: Any = TypedDict("schema", {"seen": Annotated[list[Any], reducer]}, total=False)
        built = StateGraph(schema)
        built.add_node("ask", ask)
        built.add_node("node", node)
        built.add_edge(START, "ask")
        built.add_edge(START, "node")
        return built

    lonely_drive(graph(operator.add), {}, run_id=RUN)
    run = lonely_drive(graph(picky), {}, run_id=RUN).resume(["approve"])

    assert run.status == "failed"
    assert "picky" in run.run.error["where"][-1]

    run = lonely_drive(graph(operator.add), {}, run_id=RUN)
    with using(run.installation):
        retry_run(RUN)
    assert sorted(map(str, run.resume().output["seen"])) == ["True", "node"]
    assert log.count("node") == 1


def test_an_agent_that_cannot_be_imported_keeps_the_decision_and_does_not_spin(lonely_drive: Driver) -> None:
    lonely_drive(chain(ask), {}, run_id=RUN)

    run = lonely_drive("no.such.module:graph", {}, run_id=RUN).resume(["approve"])

    stopped(run, "no.such.module")
    assert kinds(run).count("waits") < 10
    assert back(lonely_drive, chain(ask)).output["seen"] == [True]
