"""Where in the graph the caller stands: the logical step of a call, the same on every re-run.

`root@3` style paths are built from step numbers and task paths, never from checkpoint or task ids,
which carry the time of writing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langgraph.config import get_config
from langgraph.runtime import ExecutionInfo, get_runtime

from celegraph.agent import langgraph_words as words


@dataclass(frozen=True)
class Place:
    """`step` names the node's execution logically; `execution` is the very pass through the node."""

    step: str
    node: str
    task_id: str
    execution: ExecutionInfo
    # "sub|node" of the node whose @task this is, directly or through other tasks; None in a node.
    caller: str | None = None


def current_execution() -> ExecutionInfo | None:
    """The node execution this code runs in, or None outside a graph."""
    try:
        return get_runtime().execution_info
    except (RuntimeError, KeyError, AttributeError):
        return None  # outside a graph there is no runtime in the context


def here(site: Callable[[str], tuple[int, tuple[Any, ...], int]]) -> Place | None:
    """The caller's place, or None outside a node.  `site` knows from where a subgraph was called."""
    info = current_execution()
    if info is None:
        return None
    metadata = get_config()["metadata"]
    own = (metadata["langgraph_step"], tuple(metadata["langgraph_path"]))
    return Place(
        step=_logical_path(info.checkpoint_ns, own, site),
        node=metadata["langgraph_node"],
        task_id=info.task_id,
        execution=info,
        caller=_caller(info.checkpoint_ns, own[1]),
    )


def _logical_path(
    namespace: str,
    own: tuple[int, tuple[Any, ...]],
    site: Callable[[str], tuple[int, tuple[Any, ...], int]],
) -> str:
    parts = namespace.split("|")
    levels: list[str] = []
    step, path, number = (*own, 0)
    for i in range(len(parts) - 1, -1, -1):
        if parts[i].isdigit():
            continue  # the number of a repeated subgraph call; told by `site`, relative to this pass
        repeat = f"+{number}" if number else ""
        levels.append(f"{parts[i].partition(':')[0]}@{step}{_task_path(path)}{repeat}")
        if i == 0:
            break
        if _is_call(path):
            path, number = path[1], 0  # a @task runs in the very step of the node that called it
        else:
            step, path, number = site("|".join(parts[:i]))
    return "/".join(reversed(levels))


def _is_call(path: tuple[Any, ...]) -> bool:
    """The path of a @task: (push, path of the caller, number of the call)."""
    return len(path) > 2 and isinstance(path[1], tuple)


def _caller(namespace: str, path: tuple[Any, ...]) -> str | None:
    names = [part.partition(":")[0] for part in namespace.split("|") if not part.isdigit()]
    if not _is_call(path):
        return None
    while _is_call(path):
        path = path[1]
        names.pop()
    return "|".join(names)


def _task_path(path: tuple[Any, ...]) -> str:
    """ "" for a node reached by edges, "(0)" for a Send, "((entry),2)" for the third @task call."""
    if path and path[0] == words.PULL:
        return ""
    return f"({_flat(path)})"


def _flat(path: tuple[Any, ...]) -> str:
    shown = []
    for part in path:
        if isinstance(part, tuple):
            shown.append(f"({_flat(part)})")
        elif isinstance(part, bool) or (isinstance(part, str) and part.startswith(words.PREGEL)):
            continue
        else:
            shown.append(str(part))
    return ",".join(shown)
