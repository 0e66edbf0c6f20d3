"""LangGraph's saver on the pen, with two things remembered on the way.

Where each subgraph was called (its step and path in the parent), which makes a call's identity
independent of checkpoint ids; and the head of the run, so that a worker whose clock is behind is
refused instead of hiding its own progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.runtime import ExecutionInfo

from celegraph.agent import langgraph_words as words
from celegraph.agent.place import current_execution
from celegraph.agent.readable import StateUnreadable, WatchfulSerializer
from celegraph.agent.storable import UnstorableState, check_inlined, field_of, first_culprit
from celegraph.agent.unknown import PendingBelow, not_known
from celegraph.errors import CelegraphError, InvalidValue
from celegraph.ledger.pen import Pen


class ClockBehind(CelegraphError):
    """This worker's clock is behind the one that wrote the run's newest checkpoint.

    LangGraph orders checkpoints by the writer's clock: going on here would be invisible progress.
    """


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


class Saver(AsyncPostgresSaver):
    """AsyncPostgresSaver on the pen's connection and under the pen's lock."""

    def __init__(self, pen: Pen):
        super().__init__(pen.conn, serde=WatchfulSerializer())
        self.lock = pen.lock
        # LangGraph works with shallow copies of a saver: shared objects, never reassigned attributes.
        self.sites = CallSites()
        self.head: list[CheckpointTuple | None] = [None]
        self.touched = [False]
        self.before_writes: list[Callable[[str], Awaitable[None]]] = []
        self.writing: set[asyncio.Future[None]] = set()
        self.unwritten: list[BaseException] = []
        # Asked how the attempt ends when a state cannot be read, or a subgraph left work undone.
        self.stops: list[Callable[[str], Awaitable[BaseException]]] = []
        self.pending = PendingBelow()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As LangGraph's; remembers the root's head and where a subgraph is called from."""
        namespace = config["configurable"].get("checkpoint_ns", "")
        if namespace:
            self.sites.enter(namespace, config.get("metadata") or {})
        try:
            found = await super().aget_tuple(config)
        except StateUnreadable as error:
            raise await self._stop(str(error), error) from None
        if namespace:
            self.pending.opened(namespace, config.get("metadata") or {}, found)
        if not namespace and "checkpoint_id" not in config["configurable"]:
            self.head[0] = found
        return found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As LangGraph's; refuses a checkpoint that would sort before its own parent."""
        self.touched[0] = True
        parent = config["configurable"].get("checkpoint_id")
        if parent is not None and checkpoint["id"] <= parent:
            raise ClockBehind(
                "the clock of this worker is behind the clock that wrote the run's newest checkpoint;"
                " synchronise the hosts' clocks"
            )
        await self._after_writes()
        place = config["configurable"].get("checkpoint_ns", ""), parent
        for channel, value in _changed(checkpoint, new_versions):
            try:
                check_inlined(channel, value)
            except InvalidValue as problem:
                raise UnstorableState(problem, *place, channel) from None
        with self._naming(place, _changed(checkpoint, new_versions)):
            return await super().aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As LangGraph's; who must act before a task's writes become durable acts first."""
        # Before anything is awaited: the step's checkpoint is sent right behind.
        done = asyncio.get_running_loop().create_future()
        self.writing.add(done)
        try:
            self.pending.wrote(config["configurable"].get("checkpoint_ns", ""), task_path)
            if any(channel not in WRITES_IDX_MAP for channel, _ in writes) and (
                dropped := self.pending.dropped_by(task_id)
            ):
                raise await self._stop(not_known(dropped), RuntimeError(not_known(dropped)))
            for hook in self.before_writes:
                await hook(task_id)
            if not writes and task_id != words.NULL_TASK_ID:
                # All it wrote are values that LangGraph does not keep (UntrackedValue).  It has finished all
                # the same, and only a row of its own says so and releases its intents.
                writes = [(words.NO_WRITES, None)]
            place = config["configurable"].get("checkpoint_ns", ""), None
            with self._naming(place, writes):
                await super().aput_writes(config, writes, task_id, task_path)
        except BaseException as error:
            self.unwritten.append(error)
            raise
        finally:
            self.writing.discard(done)
            done.set_result(None)

    async def _stop(self, why: str, error: BaseException) -> BaseException:
        """Not simply the error: a node that calls a subgraph may eat it and go on."""
        for stop in self.stops:
            return await stop(why)
        return error

    def _load_blobs(self, blob_values: list[tuple[bytes, bytes, bytes]]) -> dict[str, Any]:
        loaded: dict[str, Any] = {}
        for one in blob_values or ():
            with self._reading(one[0].decode()):
                loaded |= super()._load_blobs([one])
        return loaded

    def _load_writes(
        self, writes: list[tuple[bytes, bytes, bytes, bytes, bytes, bytes]] | None
    ) -> list[tuple[str, str, Any]]:
        try:
            with self._reading(""):
                return super()._load_writes(writes)
        except StateUnreadable:
            for one in writes or ():  # once more, to name the field
                with self._reading(one[1].decode()):
                    super()._load_writes([one])
            raise

    @contextmanager
    def _reading(self, channel: str) -> Iterator[None]:
        """`StateUnreadable` when what is read in the block is not what was stored."""
        assert isinstance(self.serde, WatchfulSerializer)
        with self.serde.watching() as found:
            yield
        for type_name, problem in found:
            raise StateUnreadable(field_of(channel), type_name, problem)

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

    async def _after_writes(self) -> None:
        """A checkpoint comes after its step's writes, or not at all.

        LangGraph sends both at once.  With the checkpoint the node is durable and never runs again, and
        only its writes release its intents: a process that died between the two would lose them.
        """
        for writes in tuple(self.writing):
            await asyncio.shield(writes)
        if self.unwritten:
            raise self.unwritten[0]


def _changed(checkpoint: Checkpoint, versions: ChannelVersions) -> list[tuple[str, Any]]:
    values = checkpoint["channel_values"]
    return [(channel, values[channel]) for channel in versions if channel in values]
