"""A finished task's writes wait a moment for their step's checkpoint and go with it in one commit.

LangGraph sends a task's writes and the step's checkpoint as two transactions, side by side.  Here the
checkpoint comes with its step's writes or after them, never before: with the checkpoint the node is durable
and never runs again, and only its writes release its intents; a process that died between the two would
lose them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP

# Seconds.  The checkpoint of a step with one task follows its writes at once; a task that ended before its
# siblings is durable after this time, whatever they do.
_HOLD = 0.01


def namespace_of(config: RunnableConfig) -> str:
    """The checkpoint namespace that a config of LangGraph's names."""
    return str(config["configurable"].get("checkpoint_ns", ""))


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False)
class TaskWrites:
    """What LangGraph wants to be written for one task."""

    config: RunnableConfig
    writes: Sequence[tuple[str, Any]]
    task_id: str
    task_path: str
    ready: asyncio.Future[None] = field(default_factory=_future)
    sent: asyncio.Future[None] = field(default_factory=_future)

    @property
    def arguments(self) -> tuple[RunnableConfig, Sequence[tuple[str, Any]], str, str]:
        """As `aput_writes` takes them."""
        return self.config, self.writes, self.task_id, self.task_path

    @property
    def namespace(self) -> str:
        """Which graph's task it is: the root's, or a subgraph's."""
        return namespace_of(self.config)

    @property
    def finished(self) -> bool:
        """The task is done; an error, an interrupt or an answer is followed by no checkpoint."""
        return not any(channel in WRITES_IDX_MAP for channel, _ in self.writes)


class HeldWrites:
    """The writes of this attempt that are not durable yet, in the order they were announced."""

    def __init__(self) -> None:
        self._announced: dict[TaskWrites, None] = {}
        self._holding: dict[TaskWrites, None] = {}
        self._unwritten: list[BaseException] = []

    def announce(self, writes: TaskWrites) -> TaskWrites:
        """From now on no checkpoint goes before these."""
        self._announced[writes] = None
        return writes

    @contextmanager
    def accounted(self, writes: TaskWrites) -> Iterator[None]:
        """Around everything that is done about `writes`: a failure stops every later checkpoint."""
        try:
            yield
        except BaseException as error:
            self._unwritten.append(error)
            raise
        finally:
            self._announced.pop(writes, None)
            self._holding.pop(writes, None)
            if not writes.sent.done():
                writes.sent.set_result(None)

    async def rode_along(self, mine: TaskWrites) -> bool:
        """Hold `mine` for a moment.  True: a checkpoint took them along; False: send them alone."""
        mine.ready.set_result(None)
        if not mine.finished:
            return False
        self._holding[mine] = None
        await asyncio.wait((mine.sent,), timeout=_HOLD)
        if mine in self._holding:
            del self._holding[mine]
            return False
        await asyncio.shield(mine.sent)
        return True

    async def before_checkpoint(self, namespace: str) -> list[TaskWrites]:
        """The writes that a checkpoint in `namespace` must take along; all others there are durable when
        this returns.

        Raises what kept any of them, wherever, from being written.  Of other namespaces it awaits none:
        subgraphs run side by side, and two of their checkpoints could each hold what the other awaits.
        """
        for writes in self._of(namespace):
            await asyncio.wait((writes.ready, writes.sent), return_when=asyncio.FIRST_COMPLETED)
        riders = [writes for writes in self._holding if writes.namespace == namespace]
        for writes in riders:
            del self._holding[writes]
        with self._give_back(riders):
            for writes in self._of(namespace):
                if writes not in riders:
                    await asyncio.wait((writes.sent,))
            if self._unwritten:
                raise self._unwritten[0]
        return riders

    def _of(self, namespace: str) -> list[TaskWrites]:
        return [writes for writes in self._announced if writes.namespace == namespace]

    @contextmanager
    def sending(self, riders: list[TaskWrites]) -> Iterator[list[TaskWrites]]:
        """Around the transaction that makes `riders` durable; they hear how it ended."""
        with self._give_back(riders):
            yield riders
        for writes in riders:
            if not writes.sent.done():
                writes.sent.set_result(None)

    @contextmanager
    def _give_back(self, riders: list[TaskWrites]) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            for writes in riders:
                if not writes.sent.done():
                    writes.sent.set_exception(error)
                    writes.sent.exception()  # its own caller may be cancelled and never look
            raise
