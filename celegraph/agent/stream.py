"""What a run says while it works: tokens, custom chunks, progress; turned from LangGraph's words into ours.

Whoever carries the chunks is told of them through a `Sink`; what is said here is never needed by the run
itself, so nothing in this file may slow it, stop it or touch its durable state.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from langchain_core.messages import BaseMessage
from langgraph.errors import GraphBubbleUp

from celegraph.ledger.values import clean_json

logger = logging.getLogger("celegraph")

# What an agent may stream, and LangGraph's stream mode for it.  Progress comes from callbacks instead:
# LangGraph's "tasks" announces also those that are not run again.
MODES = {"tokens": "messages", "custom": "custom"}

_TOKEN_FIELDS = ("tool_calls", "tool_call_chunks", "tool_call_id", "usage_metadata")


@dataclass(frozen=True)
class Chunk:
    """One thing said.  `task` names a node's execution, the same when it is run again; `attempt` is the
    pass through it within this epoch.  What a later pass says takes the place of the earlier one's words.
    """

    kind: str  # token | custom | progress | retracted
    data: Any  # plain JSON
    step: int | None = None  # of the outermost graph
    node: str | None = None  # "outer|inner" in a subgraph
    task: str | None = None
    attempt: int = 1


class Sink(Protocol):
    """Takes chunks away.  Neither method waits for anything or raises; both may be called in any thread."""

    def put(self, chunk: Chunk) -> None:
        """Send it, or drop it and count."""

    def close(self) -> None:
        """The attempt says no more."""


@dataclass(frozen=True)
class _Task:
    node: str
    task: str
    attempt: int


@dataclass
class Stream:
    """One attempt's telling.  Used by the runner (loop) and by callbacks (node threads)."""

    sink: Sink
    kinds: Collection[str]
    epoch: int
    _step: int | None = None
    _first_step: int | None = None
    # By namespace of their graph: the passes that are under way, and the one that ended last.
    _running: dict[str, dict[str, _Task]] = field(default_factory=dict)
    _ended: dict[str, _Task] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def modes(self) -> list[str]:
        """LangGraph's stream modes for what was asked."""
        return [mode for kind, mode in MODES.items() if kind in self.kinds]

    def heard(self, namespace: tuple[str, ...], mode: str, payload: Any) -> None:
        """A part of LangGraph's own stream."""
        try:
            if mode == "messages":
                message, metadata = payload
                self._token(message, metadata)
            elif mode == "custom":
                self._custom("|".join(namespace), payload)
        except Exception as error:
            self._unsaid(error)

    def started(self, metadata: Mapping[str, Any], namespace: str, attempt: int) -> None:
        """A pass through a task begins.  What earlier passes through it have said no longer counts."""
        try:
            if "|" not in namespace:
                self._step = metadata.get("langgraph_step")
            if self._first_step is None:
                self._first_step = self._step
            task = _Task(_node(namespace), _name(namespace), attempt)
            with self._lock:
                self._running.setdefault(_graph(namespace), {})[namespace] = task
            # Only what the last owner had begun can have spoken before: its step is this attempt's first.
            if attempt > 1 or (self.epoch > 1 and self._step == self._first_step):
                self._put("retracted", {}, task)
            self._progress("started", task)
        except Exception as error:
            self._unsaid(error)

    def ended(self, namespace: str, error: BaseException | None = None) -> None:
        """The pass is through, or has failed, or stands still to ask."""
        try:
            with self._lock:
                task = self._running.get(_graph(namespace), {}).pop(namespace, None)
                if task is not None:
                    self._ended[_graph(namespace)] = task
            if task is not None:
                how = "done" if error is None else "stopped" if isinstance(error, GraphBubbleUp) else "failed"
                self._progress(how, task)
        except Exception as problem:
            self._unsaid(problem)

    def close(self) -> None:
        """The attempt is over; what its leftovers still say is not heard."""
        self.sink.close()

    def _token(self, message: BaseMessage, metadata: Mapping[str, Any]) -> None:
        namespace = str(metadata.get("langgraph_checkpoint_ns", ""))
        with self._lock:
            task = self._running.get(_graph(namespace), {}).get(namespace)
        more = {name: value for name in _TOKEN_FIELDS if (value := getattr(message, name, None))}
        if not message.content and not more:
            return  # LangChain marks the end of an answer so
        data = {"id": message.id, "type": message.type, "text": _text(message), "content": message.content}
        data |= more
        self._put("token", clean_json(data), task or _Task(_node(namespace), _name(namespace), 1))

    def _custom(self, graph: str, payload: Any) -> None:
        # LangGraph tells the graph but not the node.  One that is alone in it must have spoken.
        with self._lock:
            running = list(self._running.get(graph, {}).values())
            task = running[0] if len(running) == 1 else None if running else self._ended.get(graph)
        self._put("custom", clean_json(payload), task)

    def _progress(self, state: str, task: _Task) -> None:
        if "progress" in self.kinds:
            self._put("progress", {"state": state}, task)

    def _put(self, kind: str, data: Any, task: _Task | None) -> None:
        where = (task.node, task.task, task.attempt) if task else (None, None, 1)
        self.sink.put(Chunk(kind, data, self._step, *where))

    def _unsaid(self, error: Exception) -> None:
        # The run matters, its telling does not.  Only the type: the message may quote the chunk.
        logger.debug("chunk not told", extra={"error": type(error).__name__})


def _text(message: BaseMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "".join(
        part if isinstance(part, str) else str(part.get("text", ""))
        for part in message.content
        if isinstance(part, str | dict)
    )


def _graph(namespace: str) -> str:
    """The namespace of the graph in which a task runs, as LangGraph's custom stream tells it."""
    return namespace.rpartition("|")[0]


def _node(namespace: str) -> str:
    """ "outer:id|1|inner:id" -> "outer|inner"."""
    return "|".join(part.partition(":")[0] for part in namespace.split("|") if not part.isdigit())


def _name(namespace: str) -> str:
    """A task's short name.  LangGraph makes task ids of the checkpoint they start from: equal on a re-run."""
    return hashlib.sha256(namespace.encode()).hexdigest()[:12]
