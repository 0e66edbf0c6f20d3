"""Advice: places where an effect is allowed and safe, but would be plainer elsewhere.

Noticed while the graph runs, written down once per run, node and subject when the attempt ends.
"""

from __future__ import annotations

import functools
import logging
import sys
from types import CodeType
from typing import Any

from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Interrupt

from celegraph.agent.attempt import Attempt
from celegraph.agent.graphs import Graph
from celegraph.agent.place import Place
from celegraph.ledger import remarks

logger = logging.getLogger("celegraph")

SENTENCES = {
    "several": (
        "node {node!r} makes more than one effect; each happens once, but a crash between them leaves the"
        " first one alone for a while: one effect per node shows every state in between"
    ),
    "before a question": (
        "node {node!r} asks a person after an effect; the effect happens once, but the code around it runs"
        " again with every answer: put the question into a node of its own"
    ),
    "router": (
        "the function that chooses the way after node {node!r} makes an effect; it happens once, but when the"
        " choice fails the node runs again: move it into a node"
    ),
    "field": (
        "the state's {name!r} holds a value and today's graph does not have the field; it is dropped with the"
        " next step"
    ),
}
# A call comes from a router directly or through a few helpers.
_DEEPEST = 40


def routers_of(graph: Graph) -> frozenset[CodeType]:
    """The functions of the graph's conditional edges, its declared subgraphs' included."""
    graphs = [graph, *(sub for _, sub in graph.get_subgraphs(recurse=True))]
    paths = (
        spec.path
        for one in graphs
        if isinstance(one, CompiledStateGraph)
        for branches in one.builder.branches.values()
        for spec in branches.values()
    )
    return frozenset(code for path in paths for code in _codes(path))


def in_router(attempt: Attempt) -> bool:
    """The caller's own stack leads through a router: LangGraph gives it the context of its node."""
    if attempt.routers is None:
        attempt.routers = routers_of(attempt.graph) if attempt.graph is not None else frozenset()
    if not attempt.routers:
        return False
    frame = sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame.f_code in attempt.routers:
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


def notice_call(attempt: Attempt, place: Place, *, router: bool, tool_call: bool) -> None:
    """An effect is called here."""
    execution = attempt.execution(place.execution)
    execution.effects += 1
    if router:
        _notice(attempt, place.node, "router")
    elif execution.effects > 1 and not tool_call:  # a model's calls are its own choice
        _notice(attempt, place.node, "several")


def notice_dropped(attempt: Attempt, fields: list[str]) -> None:
    """The stored state has fields that today's graph has not; its next checkpoint will not have them."""
    for name in fields:
        attempt.advice["", f"field {name}"] = SENTENCES["field"].format(name=name)


def _notice(attempt: Attempt, node: str, about: str) -> None:
    attempt.advice[node, about] = SENTENCES[about].format(node=node)


def notice_questions(attempt: Attempt, interrupts: tuple[Interrupt, ...]) -> None:
    """The graph waits: which of the asking passes has made an effect before it asked?"""
    asking = {interrupt.id for interrupt in interrupts}
    for execution in attempt.executions.values():
        # An interrupt is named after the namespace of the pass that raised it.
        name = Interrupt.from_ns(None, execution.info.checkpoint_ns).id
        if name in asking and execution.effects:
            _notice(attempt, _node_of(execution.info.checkpoint_ns), "before a question")


async def record(attempt: Attempt) -> None:
    """Write down what was noticed and is not known yet of this run."""
    if attempt.advice and not attempt.pen.broken:
        noticed = [
            {"node": node, "about": about, "text": text} for (node, about), text in attempt.advice.items()
        ]
        try:
            await remarks.record_advice(attempt.pen, attempt.run_id, attempt.epoch, noticed)
        except Exception as error:
            # Only advice: whatever is wrong with the database, the settle that follows finds it too.
            logger.debug("advice not recorded", extra={"error": type(error).__name__})


def _node_of(namespace: str) -> str:
    """ "outer:id|inner:id" -> "inner"."""
    return [part.partition(":")[0] for part in namespace.split("|") if not part.isdigit()][-1]


def _codes(path: Any) -> list[CodeType]:
    """The code of a branch's function, plain, async, partial, or an object with __call__."""
    found = []
    for name in ("func", "afunc"):
        function: Any = getattr(path, name, None)
        while isinstance(function, functools.partial):
            function = function.func
        # A function has code; of an object it is the code of its class's __call__.
        for callee in (function, type(function).__dict__.get("__call__")):
            code = getattr(callee, "__code__", None)
            if isinstance(code, CodeType):
                found.append(code)
    return found
