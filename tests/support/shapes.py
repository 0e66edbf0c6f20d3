"""Small graphs for tests: a state that records who ran, and chains of nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy


class State(TypedDict, total=False):
    """`seen` collects what nodes return; the rest is the input."""

    seen: Annotated[list[Any], operator.add]
    order: str
    n: int


Node = Callable[[State], Any]
Graph = StateGraph[State]


def chain(*nodes: Node, retry: RetryPolicy | None = None) -> Graph:
    """The nodes one after the other, each called like its function."""
    graph = StateGraph(State)
    last = START
    for node in nodes:
        add(graph, node, retry)
        graph.add_edge(last, name_of(node))
        last = name_of(node)
    return graph


def parallel(*nodes: Node, then: Node | None = None) -> Graph:
    """All nodes in one step, and perhaps one after them."""
    graph = StateGraph(State)
    for node in nodes:
        add(graph, node)
        graph.add_edge(START, name_of(node))
    if then is not None:
        add(graph, then)
        graph.add_edge([name_of(node) for node in nodes], name_of(then))
    return graph


def add(graph: Graph, node: Node, retry: RetryPolicy | Sequence[RetryPolicy] | None = None) -> None:
    """Add a node under its function's name."""
    graph.add_node(name_of(node), node, retry_policy=retry)  # type: ignore[call-overload]


def name_of(node: Node) -> str:
    """The name a node gets here."""
    return str(getattr(node, "__name__", node))
