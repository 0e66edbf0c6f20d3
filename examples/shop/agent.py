"""The shops' refund agent: check the claim, ask a manager, pay once, tell the customer once.

No model and no network but the two providers named in the environment, so that it runs anywhere: the check
is a few rules.  Put a model into `check` and nothing else changes.

`PAYMENTS_URL`, `PAYMENTS_KEY` name the payment provider, `SHOP_SMTP_URL` and `SHOP_MAIL_LOG` the mail server.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from celegraph import (
    ApprovalPolicy,
    EffectCall,
    Happened,
    NotHappened,
    Step,
    Unknown,
    ask_approval,
    effect,
)
from celegraph.contrib.providers import http, smtp
from celegraph.errors import EffectsDisabled
from examples.payments.agent import refund

DOMAIN = "shop.example"
# A claim below this needs no story.
_SMALL_CENTS = 1_000
_WORDS = ("broken", "damaged", "late", "wrong", "missing", "defect")

ORDINARY = ApprovalPolicy(
    deadline="2h",
    notify=[Step(to="manager")],
    remind=["30m"],
    escalate=[Step("1h", to="head")],
    on_timeout="reject",
)
# Short enough to watch it.
URGENT = ApprovalPolicy(deadline="20s", escalate=[Step("5s", to="head")], on_timeout="reject")

Record = Callable[[str, str], None]


class Claim(TypedDict, total=False):
    """The input, and below it what came of it."""

    order: str
    charge: str
    cents: int
    reason: str
    customer: str
    urgent: bool

    findings: list[str]
    approved: bool
    call: dict[str, Any]
    outcome: str


def look_up_mail(call: EffectCall, to: str, subject: str, text: str) -> Happened | NotHappened | Unknown:
    """Did the mail server accept this call's message?  Its log knows."""
    return smtp.look_up_in_log(Path(os.environ["SHOP_MAIL_LOG"]), DOMAIN)(call)


@effect("mail_customer", in_doubt="reconcile", lookup=look_up_mail, timeout="5s")
def mail_customer(call: EffectCall, to: str, subject: str, text: str) -> str:
    """Send one e-mail; returns its Message-ID."""
    message = smtp.compose(call, sender=f"refunds@{DOMAIN}", to=to, subject=subject, text=text)
    return smtp.send(call, message, os.environ["SHOP_SMTP_URL"])


def check(state: Claim) -> Claim:
    """What a manager should know before deciding."""
    reason = state["reason"].lower()
    findings = []
    if state["cents"] >= _SMALL_CENTS and not any(word in reason for word in _WORDS):
        findings.append("the reason names no defect, delay or mistake")
    if len(reason.split()) < 3:
        findings.append("the reason is very short")
    return {"findings": findings or ["nothing speaks against it"]}


def ask(state: Claim) -> Claim:
    """A manager decides, and may lower the amount."""
    prompt = (
        f"Refund {euros(state['cents'])} of order {state['order']} to {state['customer']}?\n\n"
        f"The customer writes: {state['reason']}\nThe check says: {'; '.join(state['findings'])}."
    )
    policy = URGENT if state.get("urgent") else ORDINARY
    decision = ask_approval(refund.bind(state["charge"], state["cents"]), prompt=prompt, policy=policy)
    if decision.approved:
        return {"approved": True, "call": decision.args}
    why = "nobody answered in time" if decision.expired else decision.note or "a manager declined it"
    return {"approved": False, "outcome": f"declined: {why}"}


def pay(state: Claim) -> Claim:
    """The act.  A refund that the provider refuses, or that a read-only run may not make, is an outcome."""
    try:
        refund(**state["call"])
    except http.Refused as no:
        return {"outcome": f"declined: {no.body['error']['message']}"}
    except EffectsDisabled:
        return {"outcome": "trial run: nothing was paid"}
    return {"outcome": f"refunded {euros(state['call']['cents'])}"}


def tell(state: Claim) -> Claim:
    """The customer hears of it, once."""
    text = f"Your claim about order {state['order']}: {state['outcome']}."
    try:
        mail_customer(state["customer"], f"Order {state['order']}", text)
    except EffectsDisabled:
        return {"outcome": f"{state['outcome']}, and nobody was told"}
    return {}


def build(record: Record) -> StateGraph[Claim]:
    """The graph; `record(order, outcome)` writes the outcome into the shop's own tables, perhaps twice."""

    def write_down(state: Claim) -> Claim:
        record(state["order"], state["outcome"])
        return {}

    graph = StateGraph(Claim)
    for node in (check, ask, pay, tell, write_down):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "check").add_edge("check", "ask")
    graph.add_conditional_edges("ask", lambda state: "pay" if state["approved"] else "tell", ["pay", "tell"])
    graph.add_edge("pay", "tell").add_edge("tell", "write_down").add_edge("write_down", END)
    return graph


def euros(cents: int) -> str:
    """12.34 EUR"""
    return f"{cents // 100}.{cents % 100:02} EUR"
