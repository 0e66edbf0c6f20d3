"""The attempt: one owner's go at a run.  Helpers reach it through a context variable and must ask
`check_open` before they act, because a thread or task of an ended attempt may live on."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import wait
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, TypeVar

from langgraph.runtime import ExecutionInfo, RunControl

from celegraph.agent.effect_book import EffectBook
from celegraph.agent.graphs import Graph
from celegraph.agent.passes import Passes
from celegraph.agent.policy import ApprovalPolicy
from celegraph.agent.saver import Saver
from celegraph.agent.slots import Slots
from celegraph.agent.spec import Agent
from celegraph.agent.stream import Stream
from celegraph.config import Config
from celegraph.errors import AttemptOver, EffectOutsideRun
from celegraph.ledger import leases, outbox
from celegraph.ledger.approvals import Approval
from celegraph.ledger.outcomes import Sleeping, Waiting
from celegraph.ledger.pen import Pen
from celegraph.ledger.runs import Run

T = TypeVar("T")

LOST = "the run has another owner"
# What the reason of a run that waits for other code begins with.
GRAPH_CHANGED = "graph changed"

# Seconds between two looks at whether the loop is still there, while a node's thread waits for it.
_LOOK_FOR_LOOP = 1.0


class Unwind(BaseException):
    """Ends a node because the ledger has stopped the attempt.

    Not an Exception: tool error handlers eat those, and the model would simply call again.  Nothing
    rests on its being seen, though: by the time it is raised the database refuses the attempt's writes.
    """


@dataclass
class Execution:
    """One pass through a node: which recorded calls it has met, how many it has counted."""

    info: ExecutionInfo  # kept alive: its id is this execution's name
    name: str  # of this pass, in intents
    number: int = 0  # of this pass among those through its task
    slots: dict[tuple[str, str], Slots] = field(default_factory=dict)  # by step and tool
    effects: int = 0  # called in this pass, made or given back


@dataclass
class Attempt:
    """Everything the helpers inside a node need; lives on the slot's event loop."""

    run: Run
    agent: Agent
    policy: ApprovalPolicy
    config: Config
    pen: Pen
    saver: Saver
    loop: asyncio.AbstractEventLoop
    graph: Graph | None = None
    control: RunControl = field(default_factory=RunControl)
    effects: EffectBook = field(default_factory=EffectBook)
    approvals: list[Approval] = field(default_factory=list)
    executions: dict[int, Execution] = field(default_factory=dict)
    passes: Passes = field(default_factory=Passes)
    # None: nobody asked to hear the run while it works, and it costs nothing.
    stream: Stream | None = None
    # Calls under way, by key, with the outcome that whoever reaches one again waits for.
    calls: dict[str, asyncio.Future[Any]] = field(default_factory=dict)
    # Keys of effects whose plain functions are being called in node threads just now.
    calling: set[str] = field(default_factory=set)
    working: set[asyncio.Future[Any]] = field(default_factory=set)
    # Until when the calls that were granted here may take (monotonic), each as long as it was promised.
    promised_until: float = 0.0
    over: bool = False
    # Nothing that it has started is still alive and might write.
    clean: bool = True
    stopped: Waiting | Sleeping | None = None
    drain_reason: str | None = None
    # When the agent last gave a sign of life (monotonic), and what it said then, as JSON.  Set from node
    # threads and read by the heart: single assignments.
    heard_at: float = field(default_factory=time.monotonic)
    progress: str | None = None
    # See `advice`: the code of the graph's routers, once asked for; and what was noticed.
    routers: frozenset[CodeType] | None = None
    advice: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.run_id

    @property
    def epoch(self) -> int:
        """The lease epoch of this attempt."""
        return self.run.epoch

    @property
    def lost(self) -> bool:
        """Another owner has the run; known as soon as this one's heart has looked."""
        return self.drain_reason == LOST

    def check_open(self) -> None:
        """Raise `AttemptOver` unless this attempt may still act.  Call it on the loop."""
        if self.over:
            raise AttemptOver(self.run_id)

    def execution(self, info: ExecutionInfo) -> Execution:
        """The record of one pass through a node."""
        found = self.executions.get(id(info))
        if found is None:
            name = f"{self.epoch}.{len(self.executions) + 1}"
            found = Execution(info, name, self.passes.of(info.task_id))
            self.executions[id(info)] = found
        return found

    def slots(self, info: ExecutionInfo, step: str, tool: str) -> Slots:
        """The slots of one tool in one step, for this pass through the node."""
        slots = self.execution(info).slots
        if (step, tool) not in slots:
            slots[step, tool] = Slots(self.effects.at(step, tool))
        return slots[step, tool]

    async def before_writes(self, task_id: str) -> None:
        """A task's writes are about to become durable, and will release its intents: forget those that
        an earlier pass through the node wrote and the last one did not want."""
        self.heard_at = time.monotonic()  # a node that ends is alive
        stale = self.effects.unreleased(task_id)
        if stale:
            # A pass that called no effect has left no record, and wanted no intent.
            number = self.passes.of(task_id)
            mine = [e for e in self.executions.values() if e.info.task_id == task_id and e.number == number]
            name = mine[-1].name if mine else ""
            if any(e.execution != name for e in stale):
                await outbox.drop_stale(self.pen, self.run_id, self.epoch, task_id=task_id, execution=name)

    def in_flight(self, key: str, outcome: asyncio.Future[Any]) -> None:
        """From now on whoever reaches this call in this attempt joins it, until its outcome is known."""

        def over(_: object) -> None:
            if self.calls.get(key) is outcome:
                del self.calls[key]

        self.calls[key] = outcome
        outcome.add_done_callback(over)

    def promise(self, seconds: float) -> None:
        """A call has been granted that may take so long.  On the loop."""
        self.promised_until = max(self.promised_until, time.monotonic() + seconds)

    def worked(self, work: asyncio.Future[Any]) -> None:
        """An async effect is through; its caller may have been cancelled and never see the error."""
        self.working.discard(work)
        if not work.cancelled():
            work.exception()

    async def stop(self, outcome: Waiting | Sleeping) -> Unwind:
        """End the attempt from inside a node: the fence falls first, then comes the exception.

        Usage: `raise await attempt.stop(...)`.  The first stop's outcome stands.
        """
        if not self.over:
            self.over = True
            self.stopped = outcome
            await leases.drop_fence(self.pen)
        return Unwind(outcome.reason)

    async def stop_for_code(self, why: str) -> BaseException:
        """As `stop`: today's code cannot go on with what is stored."""
        return await self.stop(Waiting(f"{GRAPH_CHANGED}: {why}", waits_for="code"))

    def on_loop(self, step: Coroutine[Any, Any, T]) -> T:
        """Run `step` on the attempt's loop and wait for it, from a node's thread.

        After the attempt nobody may be running that loop any more: waiting would be for ever.
        """
        if not self.loop.is_running():
            step.close()
            raise AttemptOver(self.run_id)
        future = asyncio.run_coroutine_threadsafe(self._uncancelled(step), self.loop)
        while not wait((future,), _LOOK_FOR_LOOP).done:
            if not self.loop.is_running():
                # The attempt was torn away (a cold shutdown): nobody will ever run the step.
                raise AttemptOver(self.run_id)
        return future.result()

    async def _uncancelled(self, step: Coroutine[Any, Any, T]) -> T:
        # Nobody else knows the task that this runs in.
        with self.pen.shelter():
            return await step

    def on_loop_thread(self) -> bool:
        """The caller is on the event loop itself, where waiting for the loop would hang for ever."""
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def request_drain(self, reason: str) -> None:
        """Stop at the next superstep; the first reason stands."""
        if self.drain_reason is None:
            self.drain_reason = reason
            self.control.request_drain(reason)


_current: ContextVar[Attempt | None] = ContextVar("celegraph_attempt", default=None)


def attempt_here() -> Attempt | None:
    """The attempt this code runs in, if it runs in one."""
    return _current.get()


def current_attempt(what: str) -> Attempt:
    """The attempt this code runs in; `EffectOutsideRun` says how to get into one."""
    attempt = _current.get()
    if attempt is None:
        raise EffectOutsideRun(
            f"{what} was reached outside a celegraph run; start the agent with celegraph.start_run, or in"
            " a test with the drive fixture.  In a thread of your own, pass the context on:"
            " contextvars.copy_context().run(...)"
        )
    return attempt


def enter(attempt: Attempt) -> Callable[[], None]:
    """Make `attempt` the current one of this context; returns how to undo it."""
    token = _current.set(attempt)

    def leave() -> None:
        # ValueError: the attempt was torn away with its loop, and what is left of it is being collected in
        # another context, where nothing was set.
        with contextlib.suppress(ValueError):
            _current.reset(token)

    return leave


def boot_time() -> float:
    """Seconds on a clock that goes on while the machine sleeps, so that a call cannot start late."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.monotonic()
