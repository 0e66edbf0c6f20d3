"""Waiting for PostgreSQL's answer: a moment right here, then as psycopg waits.

To wait on the event loop is a future, a timer, a reader that is added and removed, and two turns of the loop:
on a fast disk a tenth of what a small commit takes.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Any, TypeVar

from psycopg import AsyncConnection, waiting
from psycopg.abc import PQGen

T = TypeVar("T")

# Seconds; poll() rounds up to a thousandth.  Other threads go on meanwhile.
_MOMENT = 0.001


class Answers:
    """The answers of one connection.

    The moment is waited only where the last answer came within one, and only while the asker is `alone`: else
    the loop goes on meanwhile.
    """

    def __init__(self, conn: AsyncConnection[Any], alone: Callable[[], bool]):
        self._conn = conn
        self._alone = alone
        self._soon = False
        # Windows has none.
        self._poll = select.poll() if hasattr(select, "poll") else None
        if self._poll is not None:
            self._poll.register(conn.pgconn.socket, select.POLLIN)

    async def wait(self, work: PQGen[T]) -> T:
        """What `conn.wait(work)` returns."""
        began = time.monotonic()
        here = self._soon and self._alone()
        try:
            state = next(work)
            while here and state == waiting.WAIT_R and self._comes_before(began + _MOMENT):
                state = work.send(waiting.READY_R)
        except StopIteration as end:
            answer: T = end.value
            return answer
        answer = await self._conn.wait(_rest(work, state))
        self._soon = time.monotonic() - began < _MOMENT
        return answer

    def _comes_before(self, end: float) -> bool:
        # One end for the whole answer: a long one comes in many parts, each of them at once.
        left = end - time.monotonic()
        self._soon = self._poll is not None and left > 0 and bool(self._poll.poll(left * 1000))
        return self._soon


def _rest(work: PQGen[T], state: waiting.Wait) -> PQGen[T]:
    """`work` from where it waits for `state`: a generator that has begun cannot be begun by `conn.wait`."""
    try:
        while True:
            state = work.send((yield state))
    except StopIteration as end:
        answer: T = end.value
        return answer
