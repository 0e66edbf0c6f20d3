"""An agent that is found by its import path."""

from __future__ import annotations

from tests.support.shapes import State, chain


def increment(state: State) -> State:
    return {"n": state["n"] + 1}


graph = chain(increment)
