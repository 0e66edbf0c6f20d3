"""The shop's agents; imported by workers only."""

from __future__ import annotations

from typing import TypedDict

from django.db.models import F
from langgraph.graph import START, StateGraph

from celegraph import EffectCall, ask_approval, effect
from tests.django.project.shop.models import Order


class Packing(TypedDict, total=False):
    """An order and how often it was packed."""

    order: str
    packed: int


def pack(state: Packing) -> Packing:
    """A sync node that uses the ORM."""
    Order.objects.filter(number=state["order"]).update(packed=F("packed") + 1)
    return {"packed": Order.objects.get(number=state["order"]).packed}


async def apack(state: Packing) -> Packing:
    """An async node that uses the ORM."""
    await Order.objects.filter(number=state["order"]).aupdate(packed=F("packed") + 1)
    return {"packed": (await Order.objects.aget(number=state["order"])).packed}


class Refund(TypedDict, total=False):
    """An order and what came of its refund."""

    order: str
    cents: int
    receipt: str


@effect("refund", requires_approval=True)
def pay_back(call: EffectCall, order: str, cents: int) -> str:
    """Stands for a payment provider."""
    return f"{order}: {cents}"


def refund(state: Refund) -> Refund:
    """Asks a person, then pays."""
    decision = ask_approval(pay_back.bind(state["order"], state["cents"]), prompt="Refund?")
    return {"receipt": pay_back(**decision.args) if decision.approved else "no"}


pack_graph = StateGraph(Packing).add_node(pack).add_edge(START, "pack")
apack_graph = StateGraph(Packing).add_node(apack).add_edge(START, "apack")
refund_graph = StateGraph(Refund).add_node(refund).add_edge(START, "refund")
