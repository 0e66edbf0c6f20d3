"""A worker slot: what one pool child or pool thread keeps between attempts.

One event loop with its own executor, one pen, one heart.  Opened after the fork and only when first
needed; thrown away whole when an attempt leaves anything behind that might still write.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from celegraph.agent.home import noted, task_factory
from celegraph.agent.slot_loop import SlotLoop
from celegraph.config import Config
from celegraph.errors import NodeExited
from celegraph.ledger.pen import Pen
from celegraph.tasks import hooks
from celegraph.tasks.heart import Heart

P = ParamSpec("P")
T = TypeVar("T")

# Larger than `max_concurrency` (32): else sync nodes can take every thread and starve the loop's own
# look-ups (DNS, serialisation), which run in the same executor.
_THREADS_OVER_CONCURRENCY = 32


class NodeExecutor(ThreadPoolExecutor):
    """The loop's default executor; knows how many node threads are still at work."""

    def __init__(self, threads: int):
        super().__init__(threads, thread_name_prefix="celegraph-node")
        self._busy = 0
        self._count = threading.Condition()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As ThreadPoolExecutor's; SystemExit becomes an Exception before asyncio can see it."""
        with self._count:
            self._busy += 1

        job: Callable[[], T] = noted(lambda: fn(*args, **kwargs))

        def work() -> T:
            try:
                with hooks.calling(hooks.around_node):
                    return job()
            except SystemExit as error:
                raise NodeExited(error.code) from error
            finally:
                with self._count:
                    self._busy -= 1
                    self._count.notify_all()

        return super().submit(work)

    def _adjust_thread_count(self) -> None:
        # ThreadPoolExecutor starts another thread whenever the last one is not quite back yet, up to its
        # limit in the course of time; and each thread may keep a connection of the host's framework.
        if len(self._threads) >= self._busy:
            return
        while self._idle_semaphore.acquire(blocking=False):
            pass  # no thread is free: what it still counts was taken without asking
        super()._adjust_thread_count()

    def idle(self, seconds: float) -> bool:
        """Wait until no thread is at work; False when one still is after `seconds`."""
        with self._count:
            return self._count.wait_for(lambda: self._busy == 0, seconds)

    @property
    def busy(self) -> int:
        """Threads at work."""
        return self._busy


# Every slot of this process and, in a forked child, of its parent.  Held on to because a forgotten loop
# closes itself, and in a child that would take the wake-up pipe out of the epoll both processes share:
# the parent's loop would then wake by its timers alone.
_alive: set[Slot] = set()


class Slot:
    """See the module.  Used by one thread only."""

    def __init__(self, config: Config):
        self.config = config
        self.pid = os.getpid()
        self.executor = NodeExecutor(config.max_concurrency + _THREADS_OVER_CONCURRENCY)
        self.runner = asyncio.Runner(loop_factory=SlotLoop)
        self.heart = Heart(config)
        self.pen: Pen | None = None
        _alive.add(self)
        # Why this slot's attempt shall stop at its next step; set by a signal handler.
        self.drain_asked: str | None = None
        loop = self.runner.get_loop()
        loop.set_default_executor(self.executor)
        loop.set_task_factory(task_factory)  # type: ignore[arg-type]  # typeshed wants no generics

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the slot's loop.  Whatever escapes makes the slot unusable."""
        try:
            # In the caller's context, not in the runner's own from when it was made: what a framework keeps
            # there (Flask's application, a tracer's span) is around the nodes as around any task.
            return self.runner.run(work, context=contextvars.copy_context())
        except BaseException:
            self.discard()
            raise

    async def ready_pen(self) -> Pen:
        """The slot's pen, opened when it is not there or broken."""
        if self.pen is None or self.pen.broken:
            self.pen = await Pen.open(self.config)
        return self.pen

    async def drop_pen(self) -> None:
        """Close the pen: its locks are free, its session can write no more."""
        if self.pen is not None:
            pen, self.pen = self.pen, None
            await pen.close()

    def discard(self) -> None:
        """Give the slot up.  The pen's socket is closed at once, so that the run's lock goes free."""
        if self.pen is not None:
            with contextlib.suppress(Exception):  # broken is as good as closed
                self.pen.hang_up()
            self.pen = None
        self.heart.stop()
        _alive.discard(self)
        # The loop is not closed: closing waits for threads, and those are why we are here.
        self.executor.shutdown(wait=False, cancel_futures=True)
        if getattr(_local, "slot", None) is self:
            _local.slot = None


_local = threading.local()


def current_slot(config: Config) -> Slot:
    """This thread's slot.  A forked child never uses its parent's."""
    slot: Slot | None = getattr(_local, "slot", None)
    if slot is not None and slot.pid == os.getpid() and slot.config != config:
        slot.discard()  # a second app in this thread: its runs are in another database
        slot = None
    if slot is None or slot.pid != os.getpid():
        slot = _local.slot = Slot(config)
    return slot


def close_current() -> None:
    """Give up this thread's idle slot, if it has one, and its connections; the next attempt opens another."""
    slot: Slot | None = getattr(_local, "slot", None)
    if slot is not None and slot.pid == os.getpid():
        slot.discard()
        slot.heart.join(5.0)


def drain_current(reason: str) -> None:
    """Ask this thread's attempt to stop at its next step.

    One assignment, because signal handlers call it: whatever takes a lock could wait for the very code
    that was interrupted.  The attempt's own tick passes it on.
    """
    slot: Slot | None = getattr(_local, "slot", None)
    if slot is not None:
        slot.drain_asked = reason
