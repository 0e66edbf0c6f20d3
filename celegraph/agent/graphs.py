"""Loads an agent's graph once per process and binds it to an attempt's saver."""

from __future__ import annotations

import hashlib
import importlib
import json
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde import _msgpack
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel

from celegraph.agent.spec import Agent
from celegraph.errors import AgentUnusable

Graph = Pregel[Any, Any, Any, Any]


def strict_msgpack() -> bool:
    """Whether LangGraph refuses checkpoints that name code to run: what it read when it was imported."""
    return _msgpack.STRICT_MSGPACK_ENABLED


def load_graph(name: str, agent: Agent) -> Graph:
    """The compiled graph behind an agent.  `AgentUnusable` says what is wrong with it.

    Call it before the pool forks: importing LangGraph takes over a second.
    """
    found = _import(name, agent.graph) if isinstance(agent.graph, str) else agent.graph
    if not isinstance(found, Pregel | StateGraph) and callable(found):
        found = found()
    if isinstance(found, StateGraph):
        found = found.compile()
    if not isinstance(found, Pregel):
        raise AgentUnusable(
            f"agent {name!r}: {agent.graph!r} is a {type(found).__name__}; give a StateGraph, a compiled"
            " graph, an @entrypoint, or a function without arguments that returns one"
        )
    if isinstance(found, CompiledStateGraph) and found._serde_allowlist is None:
        # The host's own copy (`with_config`) has forgotten them, too.
        found._serde_allowlist = found.builder.compile()._serde_allowlist
    _refuse_private_subgraphs(name, found)
    _refuse_breakpoints(name, found)
    return found


def bind(graph: Graph, saver: BaseCheckpointSaver[Any]) -> Graph:
    """The same graph writing through `saver`; cheap, the compiled nodes are shared."""
    bound = graph.copy(update={"checkpointer": saver})
    # LangGraph's copy forgets which classes the state's annotations name, and would read them as dicts.
    bound._serde_allowlist = graph._serde_allowlist
    return bound


def retries_in_place(graph: Graph, node: str) -> bool:
    """The node ("sub|node" in a subgraph) has a RetryPolicy of LangGraph's."""
    above, _, name = node.rpartition("|")
    found = graph
    for path, subgraph in graph.get_subgraphs(recurse=True):
        if path == above and isinstance(subgraph, Pregel):
            found = subgraph
    return name in found.nodes and bool(found.nodes[name].retry_policy)


def fingerprint(graph: Graph) -> str:
    """Changes when nodes, their triggers or the channels change; a hint for people, not a lock."""
    shape = {
        "nodes": {name: sorted(node.triggers) for name, node in graph.nodes.items()},
        "channels": sorted(graph.channels),
    }
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:16]


def _import(name: str, path: str) -> object:
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise AgentUnusable(f"agent {name!r}: cannot import {module!r}: {error}") from error
    except AttributeError:
        raise AgentUnusable(f"agent {name!r}: module {module!r} has no {attribute!r}") from None


def _refuse_private_subgraphs(name: str, graph: Graph) -> None:
    # With durability "sync" LangGraph fails on such a subgraph in the middle of a run (its loop waits
    # for a checkpoint that is never written); said here, before anything has happened.
    for path, subgraph in graph.get_subgraphs(recurse=True):
        if isinstance(subgraph, Pregel) and subgraph.checkpointer is False:
            raise AgentUnusable(
                f"agent {name!r}: subgraph {path!r} is compiled with checkpointer=False, which cannot be"
                " resumed; compile it without that argument"
            )


def _refuse_breakpoints(name: str, graph: Graph) -> None:
    # LangGraph asks nobody at a breakpoint: it stops, and the next invocation passes it.  A run is invoked
    # again whenever work is left, so what was meant as an approval would approve itself.
    for path, subgraph in (("", graph), *graph.get_subgraphs(recurse=True)):
        if isinstance(subgraph, Pregel) and (
            subgraph.interrupt_before_nodes or subgraph.interrupt_after_nodes
        ):
            where = f"subgraph {path!r}" if path else "the graph"
            raise AgentUnusable(
                f"agent {name!r}: {where} is compiled with interrupt_before or interrupt_after, which wait"
                " for nobody here; ask with ask_approval() or interrupt() in a node"
            )
