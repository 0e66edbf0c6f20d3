"""An agent that asks before it pays, with data of a customer's that no listing may show."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from celegraph import ApprovalPolicy, EffectCall, ask_approval, effect

SECRET = "SECRET-IBAN"
INPUT = {"order": "o-1", "iban": SECRET}


class State(TypedDict, total=False):
    """`order` and `iban` are the input."""

    order: str
    iban: str
    decided: str


@effect("refund", requires_approval=True)
def refund(call: EffectCall, order: str, amount: Decimal, iban: str) -> str:
    """A provider that always pays."""
    call.provider_ref = f"ref-{order}"
    return "receipt"


def look(state: State) -> State:
    """A step before the question."""
    return {}


def pay(state: State) -> State:
    """Asks, then does what was decided."""
    decision = ask_approval(
        refund.bind(state["order"], Decimal("19.99"), state["iban"]),
        prompt="Refund 19.99 EUR?\n\x1b[31mto the customer",
        policy=ApprovalPolicy(deadline="2h"),
    )
    if decision.approved:
        refund(**decision.args)
    return {"decided": decision.status}


def fail(state: State) -> Any:
    """An error that no retry mends, with the customer's data in its message."""
    raise ValueError(f"cannot read {state['iban']}")


def chain(last: Any) -> StateGraph[State, None, State, State]:
    """`look`, then the node given."""
    graph = StateGraph(State)
    graph.add_node("look", look)
    graph.add_node("last", last)
    graph.add_edge(START, "look")
    graph.add_edge("look", "last")
    graph.add_edge("last", END)
    return graph


asking = chain(pay)
failing = chain(fail)
