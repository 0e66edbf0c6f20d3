"""Pending work that today's graph does not know.  LangGraph drops it without a word, at most a log line."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import Send

from celegraph.agent import langgraph_words as words
from celegraph.ledger.effect_row import Effect

_ROOT_STEP = re.compile(r"(?P<node>.+?)@(?P<step>\d+)")


def not_known(names: Collection[str]) -> str:
    """The reason a run waits for, in words."""
    listed = ", ".join(sorted(names))
    are = (
        "is pending and today's graph does not know it"
        if len(names) == 1
        else ("are pending and today's graph does not know them")
    )
    return f"{listed} {are}"


def wanted_next(head: CheckpointTuple) -> set[str]:
    """The nodes that this checkpoint leads to: by an edge, by a Send, or by a join that is half done."""
    values = head.checkpoint["channel_values"]
    names = {c.removeprefix(words.BRANCH_TO) for c in values if c.startswith(words.BRANCH_TO)}
    return names | _targets(values.get(words.TASKS) or ())


def unknown_work(
    head: CheckpointTuple, nodes: Collection[str], channels: Collection[str], recorded: Iterable[Effect]
) -> set[str]:
    """Names of what the next superstep would drop."""
    values = head.checkpoint["channel_values"]
    names = wanted_next(head) - set(nodes)
    names |= {
        c.rpartition(":")[2] for c in values if c.startswith(words.JOIN) and values[c] and c not in channels
    }
    for _, channel, value in head.pending_writes or ():
        if channel.startswith(words.BRANCH_TO):
            names |= {channel.removeprefix(words.BRANCH_TO)} - set(nodes)
        elif channel == words.TASKS:
            names |= _targets([value]) - set(nodes)
        elif channel.startswith(words.JOIN) and channel not in channels:
            names.add(channel.rpartition(":")[2])
        elif not channel.startswith("__") and channel not in channels:
            names.add(f"a value for the state's {channel!r}")
    return names | _acted_elsewhere(head, nodes, recorded)


def dropped_fields(head: CheckpointTuple, channels: Collection[str]) -> list[str]:
    """Fields of the state that hold a value and that today's graph does not have."""
    values = head.checkpoint["channel_values"]
    own = (c for c in values if not c.startswith("__") and ":" not in c)
    return sorted(c for c in own if c not in channels and values[c] is not None)


def _targets(sends: Iterable[Any]) -> set[str]:
    return {send.node for send in sends if isinstance(send, Send)}


def _acted_elsewhere(head: CheckpointTuple, nodes: Collection[str], recorded: Iterable[Effect]) -> set[str]:
    """Nodes that have acted in the step that comes next and are not there any more.

    A renamed @entrypoint simply starts over under its new name; its effects would be other effects.
    """
    coming = int(head.metadata.get("step", -1)) + 1
    found = set()
    for effect in recorded:
        if any(effect.step.startswith(f"{node}@") for node in nodes):
            continue
        if (place := _ROOT_STEP.match(effect.step)) and int(place["step"]) == coming:
            found.add(place["node"])
    return found


def renamed_task(step: str, node: str, recorded: Iterable[Effect]) -> str | None:
    """The @task that has acted where `node` is called now: the same caller, the same call, another name.

    `step` is the logical step of the call.  LangGraph would run the new one beside the old one's results.
    """
    at = step.rfind(f"{node}@")
    above, call = step[:at], step[at + len(node) :]
    for effect in recorded:
        there = effect.step.partition("!")[0]
        if there.startswith(above) and there.endswith(call):
            name = there[len(above) : len(there) - len(call)]
            if name != node and "@" not in name:
                return name
    return None


@dataclass
class PendingBelow:
    """Work that subgraphs were resumed with, and whether it was taken up before their caller went on.

    Nobody can say beforehand which graph a node's function will call; but a subgraph that has returned
    without entering a node that it was to enter does not know that node.
    """

    # Which nodes of a namespace were entered in this attempt; nothing is missed while nobody tells.
    entered: Callable[[str], set[str]] | None = None
    _wanted: dict[str, tuple[str, set[str]]] = field(default_factory=dict)

    def opened(self, namespace: str, caller: Mapping[str, Any], found: CheckpointTuple | None) -> None:
        """A subgraph's loop opens with this checkpoint; `caller` is its calling node's metadata."""
        task_id = str(caller.get("langgraph_checkpoint_ns", "")).rpartition(":")[2]
        if found is not None and "langgraph_step" in caller and (names := wanted_next(found)):
            self._wanted[namespace] = (task_id, names)

    def wrote(self, namespace: str, path: str) -> None:
        """A task of this subgraph has come to an end, so its node is known there."""
        if (node := words.node_of_path(path)) is not None and namespace in self._wanted:
            self._wanted[namespace][1].discard(node)

    def dropped_by(self, task_id: str) -> set[str]:
        """The nodes below this task that were wanted and never entered; the task is about to be over."""
        dropped: set[str] = set()
        for namespace, (caller, names) in list(self._wanted.items()):
            if caller == task_id:
                del self._wanted[namespace]
                if self.entered is not None:
                    dropped |= names - self.entered(namespace)
        return dropped
