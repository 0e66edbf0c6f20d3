"""What is true of a run right now, read under the lease: LangGraph's state and our own rows.

The next action is derived from this and from nothing else; a message only says "look".
"""

from __future__ import annotations

from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import Interrupt, PregelTask, StateSnapshot

from celegraph.agent import advice
from celegraph.agent import langgraph_words as words
from celegraph.agent.attempt import Attempt
from celegraph.agent.graphs import Graph
from celegraph.agent.unknown import dropped_fields, unknown_work
from celegraph.ledger import approvals, checkpoints
from celegraph.ledger.approvals import Approval


@dataclass(frozen=True)
class Situation:
    """`head` is None before the first checkpoint.  Approvals: the newest question per interrupt."""

    head: CheckpointTuple | None
    snapshot: StateSnapshot | None
    questions: dict[str, Approval]
    unknown: tuple[str, ...] = ()

    @property
    def checkpoint_id(self) -> str | None:
        """The head checkpoint's id."""
        return None if self.head is None else str(self.head.checkpoint["id"])

    @property
    def failed(self) -> bool:
        """Tasks have stored an error, and no handler of the graph's own is at work on it."""
        writes = (self.head and self.head.pending_writes) or ()
        handled = {task_id for task_id, channel, _ in writes if channel == words.ERROR_SOURCE_NODE}
        return any(channel == words.ERROR and task_id not in handled for task_id, channel, _ in writes)

    @property
    def tasks(self) -> tuple[PregelTask, ...]:
        """The pending tasks."""
        return () if self.snapshot is None else self.snapshot.tasks

    @property
    def interrupts(self) -> tuple[Interrupt, ...]:
        """The questions the graph waits for, in all branches and subgraphs."""
        return () if self.snapshot is None else self.snapshot.interrupts

    def asker(self, interrupt: Interrupt) -> str | None:
        """The node of the outermost graph in which this question was asked."""
        return next((t.name for t in self.tasks if interrupt.id in {i.id for i in t.interrupts}), None)


async def look(attempt: Attempt, graph: Graph, config: RunnableConfig) -> Situation:
    """Read the run's state.  A run that never began costs nothing."""
    if attempt.epoch == 1 and attempt.saver.known.head is None and not attempt.saver.known.touched:
        return Situation(None, None, {})
    snapshot = await graph.aget_state(config)
    head = attempt.saver.known.head
    if head is None:
        return Situation(None, None, {})
    unknown = await _unknown(attempt, graph, head, snapshot)
    if not snapshot.tasks and not unknown:
        # Nobody's answer can matter any more; the settle of an end takes in what is still open.
        return Situation(head, snapshot, {})
    attempt.approvals = await approvals.of_run(attempt.pen, attempt.run_id)
    questions = {a.interrupt_id: a for a in attempt.approvals if a.interrupt_id is not None}
    return Situation(head, snapshot, questions, unknown)


async def _unknown(
    attempt: Attempt, graph: Graph, head: CheckpointTuple, snapshot: StateSnapshot
) -> tuple[str, ...]:
    """Pending work that today's graph does not know: LangGraph would drop it without a word."""
    dead = unknown_work(head, graph.nodes, graph.channels, attempt.effects)
    known = {task.id for task in snapshot.tasks} | {words.NULL_TASK_ID}
    orphans = {task_id for task_id, *_ in head.pending_writes or ()} - known
    # Writes of a task that is no task any more: its node or its triggers changed under it.
    if orphans and not dead:
        dead = await _lost_tasks(attempt, head, snapshot, orphans)
    advice.notice_dropped(attempt, dropped_fields(head, graph.channels))
    return tuple(sorted(dead))


async def _lost_tasks(
    attempt: Attempt, head: CheckpointTuple, snapshot: StateSnapshot, orphans: set[str]
) -> set[str]:
    """The names of the orphans, without the @tasks of today's tasks, and theirs: finished ones keep their
    results while the caller goes on."""
    paths = await checkpoints.paths_of_tasks(attempt.pen, attempt.run_id, head.checkpoint["id"])
    callers = [words.path_text(task.path) for task in snapshot.tasks]
    lost = set()
    for task_id, path in sorted(paths.items(), key=lambda item: len(item[1])):
        if any(path.startswith(f"~{words.PUSH}, {caller},") for caller in callers):
            callers.append(path)
        elif task_id in orphans:
            lost.add(words.node_of_path(path) or "a task whose node or edges changed")
    return lost
