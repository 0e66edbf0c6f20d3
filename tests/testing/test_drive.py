"""`drive` runs what a worker runs."""

from __future__ import annotations

from typing import TypedDict

from langgraph.graph import START, StateGraph

import celegraph
from celegraph.testing.driver import Driver


class S(TypedDict, total=False):
    x: int
    ok: bool


def build() -> StateGraph[S]:
    def ask(s: S) -> S:
        d = celegraph.ask_approval(prompt="go?")
        return {"ok": d.approved}

    g = StateGraph(S)
    g.add_node("ask", ask)
    g.add_edge(START, "ask")
    return g


def test_x(drive: Driver) -> None:
    r = drive(build(), {"x": 1})
    assert r.status == "waiting"
    r.resume(["approve"])
    assert r.output == {"x": 1, "ok": True}
