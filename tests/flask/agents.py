"""The agents of the tests' shop."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any, TypedDict

import flask
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from celegraph import ApprovalPolicy, EffectCall, ask_approval, effect

NASTY = '<script>alert("prompt")</script>\u202egnihtyna'


class State(TypedDict, total=False):
    """The input is `order`, and what a test wants to be other."""

    order: str
    prompt: str
    deadline: str
    cents: int
    asked: int
    answer: Any
    receipt: str
    seen: list[str]


@effect("refund", in_doubt="ask", requires_approval=True)
def refund(call: EffectCall, order: str, amount: Decimal, cents: int, note: str, notify: bool) -> str:
    """Arguments of several types."""
    call.provider_ref = f"re_{order}"
    return f"receipt for {cents}"


@effect("send_mail", in_doubt="ask", timeout=0.01)
def send_mail(call: EffectCall, to: str) -> str:
    """Nobody sees its end."""
    raise TimeoutError("no answer")


@effect("refused_mail", in_doubt="retry")
def refused_mail(call: EffectCall, to: str) -> str:
    """Its server is down."""
    raise ConnectionRefusedError("nobody listens")


def _look_up(state: State) -> State:
    return {"seen": ["order"]}


def _refund(state: State) -> State:
    decision = ask_approval(
        refund.bind(
            state["order"],
            amount=Decimal("19.90"),
            cents=state.get("cents", 1990),
            note="first line\nsecond <b>line</b>",
            notify=True,
        ),
        prompt=state.get("prompt", "Refund 19.90 EUR?"),
        policy=ApprovalPolicy(deadline=state.get("deadline", "2h")),
    )
    return {"receipt": refund(**decision.args) if decision.approved else decision.status}


_passes: dict[str, int] = {}


def _refund_other_amount(state: State) -> State:
    """Every pass through the node asks for another amount."""
    order = state["order"]
    _passes[order] = _passes.get(order, 0) + 1
    bound = refund.bind(order, amount=Decimal(10), cents=1000 * _passes[order], note="the same", notify=False)
    decision = ask_approval(bound, prompt="Refund?")
    return {"receipt": decision.status}


def _ask(state: State) -> State:
    return {"answer": interrupt(state.get("prompt", "Which warehouse?"))}


def _ask_actions(state: State) -> State:
    actions = [
        {"name": "send_mail", "args": {"to": "ada@example.com"}, "description": "first"},
        {"name": "close_ticket", "args": {"ticket": 7}, "description": "second"},
    ]
    return {"answer": interrupt({"action_requests": actions, "review_configs": []})}


def _mail(state: State) -> State:
    return {"receipt": send_mail(NASTY)}


def _enqueue(state: State) -> State:
    return {"receipt": refused_mail.enqueue("ada@example.com")}


def _fail(state: State) -> State:
    raise ValueError(f"no such order: {NASTY}")


def _application(state: State) -> State:
    """What Flask says inside a node."""
    return {"answer": flask.current_app.name}


async def _application_awaited(state: State) -> State:
    return {"seen": [flask.current_app.name]}


def chain(**nodes: Any) -> StateGraph[State, None, State, State]:
    """The nodes one after the other."""
    builder = StateGraph(State)
    names = [START, *nodes, END]
    for name, node in nodes.items():
        builder.add_node(name, node)
    for before, after in pairwise(names):
        builder.add_edge(before, after)
    return builder


refunds = chain(look_up=_look_up, refund=_refund)
changing = chain(refund=_refund_other_amount)
asking = chain(ask=_ask)
acting = chain(ask=_ask_actions)
enqueueing = chain(enqueue=_enqueue)
mailing = chain(look_up=_look_up, mail=_mail)
failing = chain(fail=_fail)
contexts = chain(sync=_application, awaited=_application_awaited)

AGENTS = {
    name: f"tests.flask.agents:{name}"
    for name in ("refunds", "changing", "asking", "acting", "enqueueing", "mailing", "failing", "contexts")
}
