"""A worker in the test's own process whose connection dies at any statement one wants.

What a death leaves in the database is what a killed process leaves; what the dead attempt's code still
tries is what a process would try that lost its connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakSet

import psycopg
from psycopg import AsyncConnection

from celegraph.ledger.pen import Pen
from celegraph.tasks.installation import Installation
from celegraph.tasks.slot import Slot, close_current, current_slot

_being_said: ContextVar[bool] = ContextVar("being_said", default=False)


@dataclass(frozen=True)
class Death:
    """At the `nth` thing said to the database: before it is asked for, or after it is done.

    "loses": the attempt learns that its connection is gone.  "stops": its event loop stops then and
    there, and nothing of it hands the run back.
    """

    nth: int
    side: Literal["before", "after"]
    kind: Literal["loses", "stops"]


class MortalWorker:
    """One slot in a thread of its own, doing one thing at a time."""

    def __init__(self, inst: Installation):
        self._inst = inst
        self._thread = ThreadPoolExecutor(1)
        self._death: Death | None = None
        self._left = 0
        self._died = False
        self._work: Future[None] | None = None
        self._mortals: WeakSet[Pen] = WeakSet()

    @property
    def busy(self) -> bool:
        """Still at what it was given."""
        return self._work is not None and not self._work.done()

    def give(self, duty: Callable[[Installation], object], death: Death | None) -> None:
        """Begin `duty`, and die in it."""
        assert not self.busy
        self._death, self._left, self._died = death, death.nth if death else 0, False
        self._work = self._thread.submit(self._do, duty)

    def result(self) -> None:
        """Wait until it is idle; an error that no death explains is raised."""
        if self._work is not None:
            self._work.result(60)

    def close(self) -> None:
        """The worker's orderly end."""
        self._thread.submit(close_current).result(60)
        self._thread.shutdown()

    def _do(self, duty: Callable[[Installation], object]) -> None:
        slot = current_slot(self._inst.config)
        slot.ready_pen = lambda: self._ready_pen(slot)  # type: ignore[method-assign]
        try:
            duty(self._inst)
        except BaseException:
            # What a task's body raises after its connection is gone, Celery notes and forgets.
            if not self._died:
                raise
        finally:
            self._death = None

    async def _ready_pen(self, slot: Slot) -> Pen:
        pen = await Slot.ready_pen(slot)
        if pen not in self._mortals:
            self._mortals.add(pen)
            # What is ours; and what LangGraph's saver says by cursors of its own.
            pen.statements.fetch = self._mortal(pen.conn, pen.statements.fetch)  # type: ignore[method-assign]
            pen.conn.wait = self._mortal(pen.conn, pen.conn.wait)  # type: ignore[method-assign]
        return pen

    def _mortal(self, conn: AsyncConnection[Any], say: Callable[..., Any]) -> Any:
        async def say_or_die(*args: Any, **kwargs: Any) -> Any:
            if _being_said.get():
                return await say(*args, **kwargs)  # a part of a statement that has been counted
            death = self._counted()
            if death is not None and death.side == "before":
                self._die(conn, death)
            token = _being_said.set(True)
            try:
                answer = await say(*args, **kwargs)
            finally:
                _being_said.reset(token)
            if death is not None:
                self._die(conn, death)
            return answer

        return say_or_die

    def _counted(self) -> Death | None:
        self._left -= 1
        return self._death if self._left == 0 else None

    def _die(self, conn: AsyncConnection[Any], death: Death) -> None:
        self._died = True
        conn.pgconn.finish()
        if death.kind == "loses":
            raise psycopg.OperationalError("the connection is lost")
        # asyncio lets only these two through its loop at once.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        raise KeyboardInterrupt
