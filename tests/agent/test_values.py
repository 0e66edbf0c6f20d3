"""What nobody can store is refused before the effect where that is possible, else the run fails with the
field's path, the effect stays done, and a repaired node goes on from there.  Never an endless resume."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

from celegraph import EffectCall, ask_approval, effect, recorded
from celegraph.errors import DecisionRefused, InvalidValue
from celegraph.tasks.control import cancel_run, pause_run, retry_run
from celegraph.tasks.decide import decide
from celegraph.tasks.installation import using
from celegraph.tasks.resolve import confirm_effect, fail_effect, resolve_effect
from celegraph.testing.driver import Driven, Driver
from tests.support.driving import connection
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain, name_of

# As a real agent's: it ends, or its test does.
MOST_DOORBELLS = 5


@dataclass
class Holder:
    inner: Any


class Loose(TypedDict, total=False):
    """A state whose every field takes anything."""

    x: Any
    seen: Any


def paying(log: Log, value: Callable[[], Any], *, channel: str = "x") -> Any:
    """One node: it pays, then leaves `value` in the state while the log has no "repaired"."""

    @effect("pay", in_doubt="retry")
    def pay(call: EffectCall, order: str) -> str:
        log("act")
        return "receipt"

    def node(state: Loose) -> Any:
        log("node")
        receipt = pay("o-1")
        return {channel: receipt if log.count("repaired") else value()}

    graph = StateGraph(Loose)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph


def message(run: Driven) -> str:
    return str(run.run.error["message"])


def retried(run: Driven) -> Driven:
    with using(run.installation):
        retry_run(run.run_id, by="ana")
    return run.resume()


UNSTORABLE: list[tuple[str, Callable[[], Any], str]] = [
    ("nul", lambda: "receipt\0", "state.x: contains a NUL"),
    ("surrogate", lambda: "receipt \ud800", "state.x: contains half a character"),
    ("nan", lambda: float("nan"), "state.x: is nan"),
    ("infinity", lambda: float("-inf"), "state.x: is -inf"),
    ("endless integer", lambda: 10**5000, "state.x: is an integer of more than"),
    ("large integer inside", lambda: {"a": [1, 2**70]}, "state.x.a[1]: is an integer of more than 64 bits"),
    ("object inside", lambda: {"a": [object()]}, "state.x.a[0]: is of type object"),
    ("object in a dataclass", lambda: Holder({"b": object()}), "state.x.inner.b: is of type object"),
    ("open file", lambda: open("/dev/null"), "state.x: is of type TextIOWrapper"),  # noqa: SIM115
    ("generator", lambda: (n for n in "ab"), "state.x: is of type generator"),
    ("key", lambda: {"a": {object(): 1}}, "state.x.a"),
]


@pytest.mark.parametrize(("value", "says"), [u[1:] for u in UNSTORABLE], ids=[u[0] for u in UNSTORABLE])
def test_a_state_nobody_can_store_fails_with_the_fields_path_and_a_repaired_node_goes_on(
    drive: Driver, log: Log, value: Callable[[], Any], says: str
) -> None:
    run = drive(paying(log, value), {})
    for _ in range(MOST_DOORBELLS):
        run.resume()

    assert run.status == "failed"
    assert says in message(run)
    assert log.lines == ["node", "act"]

    log("repaired")
    retried(run)

    assert run.output == {"x": "receipt"}
    assert log.lines == ["node", "act", "repaired", "node"]


def test_a_value_that_contains_itself_fails_with_the_fields_path(drive: Driver, log: Log) -> None:
    def circle() -> Any:
        own: list[Any] = []
        own.append(own)
        return own

    run = drive(paying(log, circle), {})

    assert run.status == "failed"
    assert "contains itself" in message(run)
    assert message(run).startswith("state.x")


@pytest.mark.parametrize(
    "value",
    [{"a": "nul \0"}, ["nul \0"], {"a": float("nan")}, 2**64 - 1],
    ids=["dict", "list", "nan", "integer"],
)
def test_inside_a_list_or_dict_the_state_holds_what_json_would_not(
    drive: Driver, log: Log, value: Any
) -> None:
    run = drive(paying(log, lambda: value), {})

    assert run.status == "finished"


def test_a_result_of_a_task_and_a_send_name_what_they_are(drive: Driver) -> None:
    @task
    def read() -> Any:
        return {"rows": [object()]}

    @entrypoint()
    def calling(given: Any) -> Any:
        return len(read().result()["rows"])

    def fan(state: Loose) -> list[Send]:
        return [Send("node", {"x": object()})]

    graph = StateGraph(Loose)
    graph.add_node("node", lambda state: None)
    graph.add_node("first", lambda state: None)
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", fan, ["node"])

    assert "result of the task.rows[0]: is of type object" in message(drive(calling, {}))
    assert "Send('node').x: is of type object" in message(drive(graph, {}))


def test_a_value_in_a_subgraphs_state_fails_the_run_with_its_path_and_can_be_repaired(
    drive: Driver, log: Log
) -> None:
    inner = paying(log, lambda: "receipt\0").compile()
    graph = StateGraph(Loose)
    graph.add_node("inner", inner)
    graph.add_edge(START, "inner")
    run = drive(graph, {})

    assert run.status == "failed"
    assert "state.x: contains a NUL" in message(run)

    log("repaired")
    retried(run)

    assert run.output["x"] == "receipt"
    assert log.count("act") == 1


@pytest.mark.parametrize("size", [20 * 1024 * 1024])
@pytest.mark.parametrize("nested", [False, True])
def test_a_state_of_twenty_megabytes_is_kept_and_goes_through_a_question(
    drive: Driver, size: int, nested: bool
) -> None:
    text = "x" * size

    def fill(state: Loose) -> Any:
        return {"x": [text] if nested else text}

    def ask(state: Loose) -> Any:
        interrupt("go?")
        return {"seen": len(state["x"][0] if nested else state["x"]), "x": None}

    run = drive(loose(fill, ask), {}, ["approve"])

    assert run.output == {"x": None, "seen": size}


def loose(*nodes: Callable[[Any], Any]) -> Any:
    graph = StateGraph(Loose)
    last = START
    for node in nodes:
        name = name_of(node)
        graph.add_node(name, node)  # type: ignore[arg-type]
        graph.add_edge(last, name)
        last = name
    return graph


# -- effects and reads -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ({"note": "nul \0"}, r"args.body.note: contains a NUL"),
        ({"note": "\ud800"}, r"args.body.note: contains half"),
        ({"rate": float("nan")}, r"args.body.rate: is nan"),
        ({"n": 2**2049}, r"args.body.n: is an integer"),
        ({"who": object()}, r"args.body.who: is of type object"),
        ({"text": "x" * 2_000_000}, r"args: .* the limit is"),
    ],
)
def test_arguments_nobody_can_store_are_refused_before_the_call(
    drive: Driver, log: Log, argument: Any, says: str
) -> None:
    @effect("pay")
    def pay(call: EffectCall, body: Any) -> None:
        log("act")

    def node(state: State) -> State:
        with pytest.raises(InvalidValue, match=says):
            pay(argument)
        with pytest.raises(InvalidValue, match=says):
            ask_approval(pay.bind(argument), prompt="Pay?") if "text" not in argument else pay(argument)
        with pytest.raises(InvalidValue, match=says):
            pay.enqueue(argument)
        return {"seen": ["refused"]}

    run = drive(chain(node), {})

    assert run.output["seen"] == ["refused"]
    assert run.effects == []
    assert log.lines == []


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ("receipt\0", "result: contains a NUL"),
        ({"lines": ["\ud800"]}, "result.lines[0]: contains half"),
        ([1, float("inf")], "result[1]: is inf"),
        ({"n": 2**2049}, "result.n: is an integer"),
        ({"session": object()}, "result.session: is of type object"),
        ("x" * 2_000_000, "the limit is"),
    ],
    ids=["nul", "surrogate", "infinity", "integer", "object", "large"],
)
def test_an_effect_whose_result_nobody_can_store_has_happened_and_is_not_called_again(
    drive: Driver, log: Log, result: Any, says: str
) -> None:
    @effect("pay")
    def pay(call: EffectCall) -> Any:
        log("act")
        return result

    run = drive(chain(lambda state: {"seen": [pay()]}), {})

    assert run.status == "failed"
    assert says in message(run)
    assert [e.status for e in run.effects] == ["sent"]

    retried(run)

    assert run.output["seen"] == [None]
    assert log.count("act") == 1


def test_a_read_whose_result_nobody_can_store_fails_with_its_path(drive: Driver, log: Log) -> None:
    @recorded
    def look_up(order: str) -> Any:
        log("read")
        return {"rows": [{"session": object()}]}

    run = drive(chain(lambda state: {"seen": [look_up("o-1")]}), {})

    assert run.status == "failed"
    assert "look_up'.rows[0].session: is of type object" in message(run)
    assert log.count("read") == 1


def test_a_whole_number_beyond_64_bits_is_asked_about_paid_and_given_back(drive: Driver) -> None:
    @effect("pay")
    def pay(call: EffectCall, n: int) -> int:
        return n + 1

    def ask(state: State) -> State:
        decision = ask_approval(pay.bind(2**70), prompt="Pay?")
        return {"seen": [str(pay(**decision.args))]}

    run = drive(chain(ask), {}, ["approve"])

    assert run.status == "finished"
    assert [(e.args, e.result) for e in run.effects] == [({"n": 2**70}, 2**70 + 1)]


# -- questions and answers -------------------------------------------------------------------------


def asking(value: Any, log: Log) -> Graph:
    def ask(state: State) -> State:
        answer = interrupt(value)
        log("answered")
        return {"seen": [answer]}

    return chain(ask)


@pytest.mark.parametrize(
    "value",
    [{"text": "nul \0"}, {"text": "half \ud800"}, {"rate": float("nan")}, "nul \0"],
    ids=["nul", "surrogate", "nan", "bare"],
)
def test_a_question_nobody_can_store_is_asked_in_a_readable_form(drive: Driver, log: Log, value: Any) -> None:
    run = drive(asking(value, log), {}, ["approve"])

    assert run.output["seen"] == [True]
    assert "\0" not in run.approvals[0].prompt


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"rows": [object()]}, "interrupt.rows[0]: is of type object"),
        ({"n": 2**70}, "interrupt.n: is an integer of more than 64 bits"),
    ],
)
def test_a_question_that_cannot_be_kept_fails_with_its_path(
    drive: Driver, log: Log, value: Any, says: str
) -> None:
    run = drive(asking(value, log), {})

    assert run.status == "failed"
    assert says in message(run)


ANSWERS: list[tuple[dict[str, Any], str]] = [
    ({"verb": "answer", "value": {"note": "nul \0"}}, r"value.note: contains a NUL"),
    ({"verb": "answer", "value": ["\ud800"]}, r"value\[0\]: contains half"),
    ({"verb": "answer", "value": float("nan")}, r"value: is nan"),
    ({"verb": "answer", "value": [2**70]}, r"value\[0\]: is an integer of more than 64 bits"),
    ({"verb": "answer", "value": object()}, r"value: is of type object"),
    ({"verb": "approve", "note": "nul \0"}, r"note= contains a NUL"),
    ({"verb": "approve", "note": "\ud800"}, r"note= contains half"),
    ({"verb": "approve", "note": 7}, r"note= is of type int"),
    ({"verb": "approve", "by": "ana\0"}, r"by= contains a NUL"),
]


@pytest.mark.parametrize(("answer", "says"), ANSWERS, ids=[str(n) for n in range(len(ANSWERS))])
def test_an_answer_nobody_can_store_is_refused_and_the_question_stays_open(
    drive: Driver, log: Log, answer: dict[str, Any], says: str
) -> None:
    run = drive(asking("go?", log), {})

    with using(run.installation), pytest.raises((InvalidValue, DecisionRefused), match=says):
        decide(run.approvals[0].approval_id, **{"by": "ana", **answer})

    assert run.approvals[0].status == "open"
    run.resume([("answer", "fine")])
    assert run.output["seen"] == ["fine"]


def test_an_edit_nobody_can_store_is_refused_with_its_path(drive: Driver) -> None:
    @effect("pay")
    def pay(call: EffectCall, order: str) -> str:
        return order

    def ask(state: State) -> State:
        return {"seen": [pay(**ask_approval(pay.bind("o-1"), prompt="Pay?").args)]}

    run = drive(chain(ask), {})
    with using(run.installation), pytest.raises(DecisionRefused, match=r"'order': contains a NUL"):
        decide(run.approvals[0].approval_id, "edit", by="ana", args={"order": "o-2\0"})

    assert run.approvals[0].status == "open"


def test_what_people_say_about_runs_and_effects_is_checked_before_anything_is_written(
    drive: Driver, log: Log
) -> None:
    @effect("pay")
    def pay(call: EffectCall) -> str:
        raise TimeoutError("no answer")

    run = drive(chain(lambda state: {"seen": [pay()]}), {}, sleeps=False)
    key = run.effects[0].key
    before = len(run.events)
    refused: list[Callable[[], object]] = [
        lambda: pause_run(run.run_id, reason="nul \0"),
        lambda: cancel_run(run.run_id, reason="\ud800"),
        lambda: cancel_run(run.run_id, reason="x" * 10_001),
        lambda: retry_run(run.run_id, by="ana\0"),
        lambda: resolve_effect(key, "happened", by="ana\0"),
        lambda: resolve_effect(key, "happened", by="a" * 201),
        lambda: resolve_effect(key, "happened", by="ana", note="\0"),
        lambda: resolve_effect(key, "happened", by="ana", result={"a": "\0"}),
        lambda: confirm_effect(key, result="\0"),
        lambda: fail_effect(key, reason="\0"),
    ]

    with using(run.installation):
        for call in refused:
            with pytest.raises(InvalidValue):
                call()

    assert len(run.events) == before
    assert run.effects[0].status == "pending"


def test_an_outcome_the_database_refuses_fails_the_run_instead_of_repeating_it(
    drive: Driver, log: Log
) -> None:
    def node(state: State) -> State:
        log("node")
        return {"seen": ["done"]}

    run = drive(asking("first?", log), {})
    with connection(run) as conn:
        conn.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN RAISE EXCEPTION 'too long' USING ERRCODE = 'program_limit_exceeded'; END$$"
        )
        conn.execute(
            b"CREATE TRIGGER refuse BEFORE UPDATE ON runs FOR EACH ROW"
            b" WHEN (NEW.output IS NOT NULL) EXECUTE FUNCTION refuse()"
        )
    try:
        run.resume(["approve"])
    finally:
        with connection(run) as conn:
            conn.execute("DROP FUNCTION refuse CASCADE")

    assert run.status == "failed"
    assert run.run.reason == "its outcome cannot be stored"
    assert log.count("answered") == 1
