"""How often each node has been entered in this attempt.

A node's RetryPolicy runs it again within the attempt, and LangGraph tells the saver nothing of it.  What
an earlier pass wanted (an intent) must not be taken for the last one's, also when the last one calls no
effect at all and is therefore never seen by `Attempt.execution`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from celegraph.agent.stream import Stream


class Passes(BaseCallbackHandler):
    """Hears from LangChain of every runnable that starts.  A pass is one whose caller belongs to another
    task: what a node itself calls has the node's own namespace."""

    run_inline = True

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self._entered: Counter[str] = Counter()
        self._namespaces: dict[UUID, str] = {}
        self._told: dict[UUID, str] = {}
        # By namespace of the (sub)graph: the nodes that were entered there.
        self._nodes: dict[str, set[str]] = {}

    def entered(self, namespace: str) -> set[str]:
        """The nodes of this subgraph that have run in this attempt."""
        return self._nodes.get(namespace, set())

    def of(self, task_id: str) -> int:
        """Passes through this task so far; 0: LangChain has told of none."""
        return self._entered[task_id]

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Counts when it is a task's own runnable."""
        namespace = str((metadata or {}).get("langgraph_checkpoint_ns", ""))
        # A caller that nobody has told of (a tool, a thread without callbacks) is not proof of a new pass.
        if parent_run_id in self._namespaces and self._namespaces[parent_run_id] != namespace:
            above, own = namespace.rpartition("|")[::2]
            node, task_id = own.rpartition(":")[::2]
            self._nodes.setdefault(above, set()).add(node)
            self._entered[task_id] += 1
            if self.stream is not None:
                self._told[run_id] = namespace
                self.stream.started(metadata or {}, namespace, self._entered[task_id])
        self._namespaces[run_id] = namespace

    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **_: Any) -> None:
        """Nothing can be called by it any more."""
        self._over(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """As `on_chain_end`."""
        self._over(run_id, error)

    def _over(self, run_id: UUID, error: BaseException | None) -> None:
        self._namespaces.pop(run_id, None)
        namespace = self._told.pop(run_id, None)
        if namespace is not None and self.stream is not None:
            self.stream.ended(namespace, error)
