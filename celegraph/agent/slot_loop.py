"""The event loop of a worker slot: asyncio's own, but LangGraph's saver encodes and decodes on it.

AsyncPostgresSaver sends every encoding of a state through a thread, so that a server's loop stays free for
others.  A slot's loop serves one run, and ormsgpack holds the interpreter's lock either way; sixteen trips to
a thread and back are a tenth of the time of a run of five steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVarTuple, Unpack

from celegraph.errors import NodeExited

Ts = TypeVarTuple("Ts")

_on_the_loop: ContextVar[bool] = ContextVar("celegraph_on_the_loop", default=False)


@contextmanager
def threads_spared() -> Iterator[None]:
    """Within it, what this task sends to the default executor runs at once, on the loop."""
    token = _on_the_loop.set(True)
    try:
        yield
    finally:
        _on_the_loop.reset(token)


class SlotLoop(asyncio.SelectorEventLoop):
    """See the module."""

    def run_in_executor(
        self, executor: Any, func: Callable[[Unpack[Ts]], Any], *args: *Ts
    ) -> asyncio.Future[Any]:
        """As asyncio's; under `threads_spared` the future is done when this returns."""
        if executor is not None or not _on_the_loop.get():
            return super().run_in_executor(executor, func, *args)
        future: asyncio.Future[Any] = self.create_future()
        try:
            future.set_result(func(*args))
        except SystemExit as error:
            # As in a node's thread: asyncio would end the whole loop.
            future.set_exception(NodeExited(error.code))
        except Exception as error:
            future.set_exception(error)
        return future
