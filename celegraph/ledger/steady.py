"""Tasks that are cancelled between statements, never inside one: a statement that was sent may have
committed, so it is always seen to its end.

A task of its own for every statement would do as well, and costs a twentieth of an effect's time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class SteadyTask(asyncio.Task[T]):
    """A task that hears of its cancellation when the statement under way has ended."""

    _in_statement = False
    _unheard: tuple[Any, ...] = ()

    def cancel(self, msg: Any | None = None) -> bool:
        """As Task's, at the end of the statement under way."""
        if not self._in_statement:
            return super().cancel(msg)
        self._unheard = (*self._unheard, msg)
        return True

    async def through(self, statement: Coroutine[Any, Any, R]) -> R:
        """Await `statement` in this very task; then comes the cancellation, if somebody asked for it."""
        self._in_statement = True
        try:
            return await statement
        finally:
            self._in_statement = False
            if self._unheard:
                await self._hear()

    async def _hear(self) -> None:
        # Each, not one for all: asyncio.timeout counts the requests to know which one is its own.
        unheard, self._unheard = self._unheard, ()
        for msg in unheard:
            super().cancel(msg)
        await asyncio.sleep(0)  # here it arrives


async def to_its_end(statement: Coroutine[Any, Any, R]) -> R:
    """Await a statement that nobody shall cut short, whatever becomes of the current task."""
    task = asyncio.current_task()
    if isinstance(task, SteadyTask) and not task.cancelling():
        return await task.through(statement)
    # Another loop's task; or a cancellation is on its way already and would arrive inside the statement.
    return await asyncio.shield(asyncio.ensure_future(statement))
