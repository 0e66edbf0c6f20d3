"""The refund agent: judge the claim, ask above a limit, refund at a Stripe-shaped provider.

Its one act honours the provider's idempotency keys, so a call whose end nobody saw is made again with
the same key, for as long as the provider remembers it: `in_doubt="retry", key_ttl="24h"`.
"""

from __future__ import annotations

import os
from typing import Any, TypedDict

import httpx
from langgraph.graph import START, StateGraph

from celegraph import ApprovalPolicy, EffectCall, ask_approval, effect
from celegraph.contrib.providers import http

# A person is asked above this.
FREE_CENTS = 5_000
POLICY = ApprovalPolicy(deadline="24h", on_timeout="reject")


class Claim(TypedDict, total=False):
    """The input is charge, cents and reason; the rest is what came of it."""

    charge: str
    cents: int
    reason: str
    approved: bool
    refund: str
    outcome: str


@effect("refund", in_doubt="retry", key_ttl="24h", timeout="10s")
def refund(call: EffectCall, charge: str, cents: int) -> str:
    """Refund `cents` of a charge; returns the refund's id."""
    headers = {"Authorization": f"Bearer {os.environ['PAYMENTS_KEY']}"}
    body = {"charge": charge, "amount": cents, "metadata": {"run": call.run_id}}
    with httpx.Client(base_url=os.environ["PAYMENTS_URL"]) as client:
        answer: dict[str, Any] = http.post(call, client, "/v1/refunds", json=body, headers=headers)
    return str(answer["id"])


def judge(state: Claim) -> Claim:
    """Small refunds are the agent's own to give."""
    if state["cents"] <= FREE_CENTS:
        return {"approved": True}
    asked = refund.bind(state["charge"], state["cents"])
    prompt = f"Refund {state['cents'] / 100:.2f} of {state['charge']}? {state.get('reason', '')}"
    return {"approved": ask_approval(asked, prompt=prompt, policy=POLICY).approved}


def pay(state: Claim) -> Claim:
    """The act.  A refund that the provider refuses is an outcome, not an accident."""
    if not state["approved"]:
        return {"outcome": "not approved"}
    try:
        return {"refund": refund(state["charge"], state["cents"]), "outcome": "refunded"}
    except http.Refused as no:
        return {"outcome": f"refused: {no.body['error']['message']}"}


graph = StateGraph(Claim).add_sequence([judge, pay]).add_edge(START, "judge")
