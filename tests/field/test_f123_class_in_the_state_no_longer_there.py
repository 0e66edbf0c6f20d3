"""F123: class in the state no longer there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, make_dataclass
from enum import Enum
from types import ModuleType
from typing import Any, NamedTuple, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from pydantic import create_model

from celegraph import EffectCall, ask_approval, effect
from celegraph.testing.driver import Driven, Driver
from tests.support.driving import sweep
from tests.support.log import Log
from tests.support.shapes import State

SHOP = "shop_of_f123"


@pytest.fixture
def shop() -> Iterator[ModuleType]:
    """The module of the host's classes; what is in it is today's code."""
    sys.modules[SHOP] = module = ModuleType(SHOP)
    yield module
    del sys.modules[SHOP]


def deploy(shop: ModuleType, *classes: type) -> None:
    """These classes and no others are in the code from now on."""
    for name in [name for name in vars(shop) if not name.startswith("__")]:
        delattr(shop, name)
    for one in classes:
        one.__module__ = SHOP
        setattr(shop, one.__name__, one)


def order_with(*fields: str, name: str = "Order") -> type:
    return make_dataclass(name, [(one, int) for one in fields])


def graph(log: Log, order: type, make: Callable[[], Any], cents: Callable[[Any], int]) -> Any:
    """It keeps an order in its state, asks, and pays what the order says."""

    @effect("pay")
    def pay(call: EffectCall, cents: int) -> str:
        log(f"pay {cents}")
        return "receipt"

    def prepare(state: Any) -> Any:
        return {"order": make()}

    def settle(state: Any) -> Any:
        decision = ask_approval(prompt="Pay?")
        return {"receipt": pay(cents(state["order"])) if decision.approved else None}

    fields: Any = {"order": order, "receipt": str}
    schema: Any = TypedDict("schema", fields, total=False)  # type: ignore[misc]
    built: Any = StateGraph(schema)
    built.add_node("prepare", prepare)
    built.add_node("settle", settle)
    built.add_edge(START, "prepare")
    built.add_edge("prepare", "settle")
    return built


def stopped(run: Driven, *says: str) -> None:
    """It waits for code, whatever rings, and says what is missing; the decision is kept."""
    for _ in range(3):
        sweep(run, started=True)
        run.resume()
    assert run.status == "waiting"
    assert run.run.waits_for == "code"
    for words in says:
        assert words in str(run.run.reason)
    assert run.approvals[0].status == "approved"


class Paid(Enum):
    NO = "no"
    LATER = "later"


class Cart(NamedTuple):
    cents: int


def model_with(**fields: Any) -> type:
    model: type = create_model("Order", **fields)
    return model


CHANGES: list[tuple[str, type, type, str]] = [
    ("renamed", order_with("cents"), order_with("cents", name="Purchase"), "does not have"),
    ("field renamed", order_with("cents"), order_with("amount"), "whose field 'cents'"),
    ("field removed", order_with("cents", "tax"), order_with("cents"), "whose field 'tax'"),
    ("field wanted", order_with("cents"), order_with("cents", "tax"), "without the field 'tax'"),
    ("model's field renamed", model_with(cents=(int, ...)), model_with(n=(int, 0)), "whose field 'cents'"),
    (
        "model's field wanted",
        model_with(cents=(int, ...)),
        model_with(cents=(int, ...), tax=(int, ...)),
        "without the field 'tax'",
    ),
]


@pytest.mark.parametrize(("before", "after", "says"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_f123_class_in_the_state_no_longer_there(
    lonely_drive: Driver,
    log: Log,
    shop: ModuleType,
    before: type,
    after: type,
    says: str,
) -> None:
    fields = [*getattr(before, "__dataclass_fields__", getattr(before, "model_fields", {}))]
    make = lambda: before(**dict.fromkeys(fields, 1999))  # noqa: E731
    wrong = lambda order: order["cents"] if isinstance(order, dict) else 0  # noqa: E731

    deploy(shop, before)
    asked = lonely_drive(graph(log, before, make, lambda o: o.cents), {}, run_id="f123")
    assert asked.status == "waiting"

    deploy(shop, after)
    run = lonely_drive(graph(log, after, make, wrong), {}, run_id="f123").resume(["approve"])

    stopped(run, "state.order holds shop_of_f123.Order", says)
    assert log.lines == []

    deploy(shop, before)
    sweep(run, started=True)
    back = lonely_drive(graph(log, before, make, lambda o: o.cents), {}, run_id="f123").resume()

    assert back.status == "finished"
    assert log.lines == ["pay 1999"]


def test_f123_a_field_with_a_default_is_no_change_that_stops_a_run(
    lonely_drive: Driver, log: Log, shop: ModuleType
) -> None:
    before = order_with("cents")

    @dataclass
    class Order:
        cents: int
        tax: int = 0

    deploy(shop, before)
    lonely_drive(graph(log, before, lambda: before(1999), lambda o: o.cents), {}, run_id="f123")
    deploy(shop, Order)
    run = lonely_drive(graph(log, Order, lambda: None, lambda o: o.cents + o.tax), {}, run_id="f123")

    assert run.resume(["approve"]).status == "finished"
    assert log.lines == ["pay 1999"]


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        (Paid, Paid.LATER, lambda: [Enum("Paid", {"NO": "no"})]),
        (Cart, Cart(1999), lambda: []),
    ],
    ids=["a value of an enum", "a named tuple"],
)
def test_f123_also_inside_lists_in_questions_and_in_subgraphs(
    lonely_drive: Driver, shop: ModuleType, before: Any, value: Any, after: Callable[[], list[Any]]
) -> None:
    def ask(state: State) -> Any:
        return {"seen": [interrupt({"about": [value]})]}

    def outer() -> Any:
        inner = StateGraph(State)
        inner.add_node("ask", ask)
        inner.add_edge(START, "ask")
        graph = StateGraph(State)
        graph.add_node("inner", inner.compile())
        graph.add_edge(START, "inner")
        return graph

    name = before.__name__
    deploy(shop, before)
    run = lonely_drive(outer(), {}, run_id="f123")
    deploy(shop, *after())
    run.resume(["approve"])

    stopped(run, f"shop_of_f123.{name}")

    deploy(shop, before)
    sweep(run, started=True)
    assert run.resume().status == "finished"


@pytest.mark.parametrize("configured", [False, True])
def test_f123_a_class_that_is_still_there_comes_back_as_itself(
    lonely_drive: Driver, log: Log, shop: ModuleType, configured: bool
) -> None:
    order = order_with("cents")
    deploy(shop, order)
    built = graph(log, order, lambda: order(1999), lambda o: o.cents).compile()

    run = lonely_drive(built.with_config({"tags": ["t"]}) if configured else built, {}, ["approve"])

    assert run.status == "finished"
    assert log.lines == ["pay 1999"]
