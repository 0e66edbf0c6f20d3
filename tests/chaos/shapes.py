"""What a run of each agent must have come to when it has finished; LangGraph is not imported here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """Steps that a finished run has counted, and the numbers it has paid.  `asks`: people may have said
    no, then it has paid none of them."""

    steps: int
    paid: frozenset[int]
    asks: bool = False
    weight: int = 2


SHAPES: Mapping[str, Shape] = {
    "loop": Shape(9, frozenset({3, 6, 9})),
    "branches": Shape(4, frozenset({1, 2, 3}), weight=3),
    "fan_out": Shape(6, frozenset({1, 2, 3, 4})),
    "nested": Shape(6, frozenset({1, 2, 3}), weight=3),
    "side_by_side": Shape(5, frozenset({1, 2, 3, 4}), weight=3),
    "outbox": Shape(5, frozenset({1, 2, 3}), weight=3),
    "approved": Shape(3, frozenset({1}), asks=True),
    "urgent": Shape(3, frozenset({1}), asks=True),
    "allowed": Shape(3, frozenset({1}), asks=True),
    "long": Shape(3, frozenset({1, 2})),
    "failing": Shape(3, frozenset({1})),
    "functional": Shape(1, frozenset({1, 2, 3})),
    # Never drawn: the oracle's own test starts it, and must find it out.
    "careless": Shape(1, frozenset({1}), weight=0),
}
AGENTS = {name: f"tests.chaos.agents:{name}" for name in SHAPES}
