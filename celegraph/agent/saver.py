"""LangGraph's saver on the pen: a step's writes and its checkpoint are one transaction.

Two things are remembered on the way.  Where each subgraph was called (its step and path in the
parent), which makes a call's identity independent of checkpoint ids; and the head of the run, after
which this process's ids go on, so that a worker whose clock is behind does not hide its own progress.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.runtime import ExecutionInfo

from celegraph.agent import clock
from celegraph.agent import langgraph_words as words
from celegraph.agent.held import HeldWrites, TaskWrites, namespace_of
from celegraph.agent.place import current_execution
from celegraph.agent.readable import ReadingSaver, StateUnreadable
from celegraph.agent.slot_loop import threads_spared
from celegraph.agent.storable import UnstorableState, check_inlined, first_culprit
from celegraph.agent.unknown import PendingBelow, not_known
from celegraph.errors import ClockBehind, InheritedState, InvalidValue
from celegraph.ledger.pen import Pen


@dataclass
class CallSites:
    """From which step of its parent each (sub)graph namespace was entered, in this attempt."""

    steps: dict[str, tuple[int, tuple[Any, ...]]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    bases: dict[tuple[str, int], int] = field(default_factory=dict)
    relative: dict[str, int] = field(default_factory=dict)
    # Keeps the objects whose ids are keys above alive, so that an id is never used twice.
    kept: list[ExecutionInfo] = field(default_factory=list)

    def enter(self, namespace: str, metadata: Mapping[str, Any]) -> None:
        """A subgraph's loop opens `namespace`; `metadata` is still that of the node that calls it."""
        if "langgraph_step" not in metadata:
            return
        task_ns, _, number = namespace.rpartition("|")
        if not number.isdigit():
            task_ns, number = namespace, "0"
        base = self._base(task_ns, current_execution())
        self.calls[task_ns] = max(self.calls.get(task_ns, 0), int(number) + 1)
        self.relative[namespace] = int(number) - base
        self.steps[namespace] = (metadata["langgraph_step"], tuple(metadata["langgraph_path"]))

    def _base(self, task_ns: str, info: ExecutionInfo | None) -> int:
        """The number of the first subgraph call of this pass through the node.

        LangGraph numbers a node's subgraph calls on across its RetryPolicy attempts; ours start anew
        with every pass, or the second attempt's effects would be other effects.
        """
        if info is None:
            return 0
        key = (task_ns, id(info))
        if key not in self.bases:
            if info.node_attempt == 1:
                self.calls[task_ns] = 0
            self.bases[key] = self.calls.get(task_ns, 0)
            self.kept.append(info)
        return self.bases[key]

    def site(self, namespace: str) -> tuple[int, tuple[Any, ...], int]:
        """Step and path of the calling node, and which of its calls in this execution it is."""
        return (*self.steps[namespace], self.relative[namespace])


@dataclass
class Known:
    """What one attempt's saver has seen, and whom it asks."""

    # The root's newest checkpoint, as it was read last; and whether this attempt has stored one.
    head: CheckpointTuple | None = None
    touched: bool = False
    # No attempt has stored anything: what is found was another run's.
    fresh: bool = False
    # Hears which task's writes are about to become durable.
    before_writes: Callable[[str], Awaitable[None]] | None = None
    # Asked how the attempt ends when a state cannot be read, or a subgraph left work undone.
    stop: Callable[[str], Awaitable[BaseException]] | None = None


class Saver(ReadingSaver):
    """AsyncPostgresSaver on the pen's connection and under the pen's lock."""

    def __init__(self, pen: Pen):
        super().__init__(pen.conn)
        self.lock = pen.lock
        # LangGraph works with shallow copies of a saver: these are shared, and never reassigned.
        self.sites = CallSites()
        self.known = Known()
        self.held = HeldWrites()
        self.pending = PendingBelow()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As LangGraph's; remembers the root's head and where a subgraph is called from."""
        namespace = config["configurable"].get("checkpoint_ns", "")
        if namespace:
            self.sites.enter(namespace, config.get("metadata") or {})
        try:
            with threads_spared():
                found = await super().aget_tuple(config)
        except StateUnreadable as error:
            raise await self._stop(str(error), error) from None
        if found is not None:
            clock.catch_up(found.checkpoint["id"])
        if namespace:
            self.pending.opened(namespace, config.get("metadata") or {}, found)
        if not namespace and "checkpoint_id" not in config["configurable"]:
            if found is not None and self.known.fresh and not self.known.touched:
                raise InheritedState(
                    f"run {config['configurable']['thread_id']!r} has stored nothing yet, and there are"
                    " checkpoints under its id: the row of an earlier run was deleted without them. Take"
                    " another run_id, or delete what has this thread_id from checkpoints, checkpoint_writes"
                    " and checkpoint_blobs before the run is tried again"
                )
            self.known.head = found
        return found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As LangGraph's, together with the writes of its step; refuses a checkpoint that would sort before
        its own parent."""
        self.known.touched = True
        parent = config["configurable"].get("checkpoint_id")
        if parent is not None and checkpoint["id"] <= parent:
            raise ClockBehind(
                "the clock of this worker is behind the clock that wrote the run's newest checkpoint;"
                " synchronise the hosts' clocks"
            )
        namespace = namespace_of(config)
        place, changed = (namespace, parent), _changed(checkpoint, new_versions)
        with self.held.sending(await self.held.before_checkpoint(namespace)) as riders:
            _check_inlined(place, changed)
            async with self._one_transaction():
                for writes in riders:
                    await self._put_writes(writes)
                with self._naming(place, changed), threads_spared():
                    return await super().aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As LangGraph's; who must act before a task's writes become durable acts first, and the writes of a
        finished task wait a moment for the checkpoint that they can go with."""
        if not writes and task_id != words.NULL_TASK_ID:
            # All it wrote are values that LangGraph does not keep (UntrackedValue).  It has finished all the
            # same, and only a row of its own says so and releases its intents.
            writes = [(words.NO_WRITES, None)]
        # Before anything is awaited: the step's checkpoint is sent right behind.
        mine = self.held.announce(TaskWrites(config, writes, task_id, task_path))
        with self.held.accounted(mine):
            self.pending.wrote(mine.namespace, task_path)
            if mine.finished and (dropped := self.pending.dropped_by(task_id)):
                raise await self._stop(not_known(dropped), RuntimeError(not_known(dropped)))
            if self.known.before_writes is not None:
                await self.known.before_writes(task_id)
            if not await self.held.rode_along(mine):
                with self.held.sending([mine]):
                    await self._put_writes(mine)

    async def _put_writes(self, writes: TaskWrites) -> None:
        with self._naming((writes.namespace, None), writes.writes), threads_spared():
            await super().aput_writes(*writes.arguments)

    async def _stop(self, why: str, error: BaseException) -> BaseException:
        """Not simply the error: a node that calls a subgraph may eat it and go on."""
        return error if self.known.stop is None else await self.known.stop(why)

    @contextmanager
    def _naming(self, place: tuple[str, str | None], values: Sequence[tuple[str, Any]]) -> Iterator[None]:
        """What the serialiser refuses becomes an error that names the field."""
        try:
            yield
        except (TypeError, ValueError, OverflowError) as error:
            if (found := first_culprit(self.serde, values)) is None:
                raise
            channel, problem = found
            raise UnstorableState(problem, *place, channel) from error

    @asynccontextmanager
    async def _one_transaction(self) -> AsyncIterator[None]:
        """Everything the saver sends inside is one pipeline, and so one implicit transaction."""
        async with super()._cursor(pipeline=True) as cursor:
            token = _shared_cursor.set(cursor)
            try:
                yield
            finally:
                _shared_cursor.reset(token)

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[Any]:
        # Private in LangGraph (see tests/contracts): there is no other way to make its two statements one
        # transaction, short of writing its SQL again.
        shared = _shared_cursor.get()
        if shared is not None:
            yield shared
        else:
            async with super()._cursor(pipeline=pipeline) as cursor:
                yield cursor


_shared_cursor: ContextVar[Any] = ContextVar("celegraph_saver_cursor", default=None)


def _changed(checkpoint: Checkpoint, versions: ChannelVersions) -> list[tuple[str, Any]]:
    values = checkpoint["channel_values"]
    return [(channel, values[channel]) for channel in versions if channel in values]


def _check_inlined(place: tuple[str, str | None], values: Sequence[tuple[str, Any]]) -> None:
    for channel, value in values:
        try:
            check_inlined(channel, value)
        except InvalidValue as problem:
            raise UnstorableState(problem, *place, channel) from None
