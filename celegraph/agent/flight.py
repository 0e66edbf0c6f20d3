"""What a plain function's call comes to, as the loop can wait for it: its thread outlives the node's pass.

LangGraph cannot stop a thread.  When it gives up a node and runs it again, or when two threads of a node
want the same call, the second finds the first in flight and waits for its outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any


class Flight:
    """One call from the caller's thread; `outcome` is settled on the loop, once."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self.outcome: asyncio.Future[Any] = loop.create_future()

    def land(self, result: Any) -> None:
        """The call's result, for whoever joined."""
        self._on_loop(lambda: self.outcome.set_result(result))

    def fail(self, error: BaseException) -> None:
        """The call's error, for whoever joined."""
        # A future takes no StopIteration: a coroutine that met it would look finished.
        kept = RuntimeError(repr(error)) if isinstance(error, StopIteration) else error

        def settle() -> None:
            self.outcome.set_exception(kept)
            self.outcome.exception()  # seen: the caller has raised it, perhaps nobody has joined

        self._on_loop(settle)

    def _on_loop(self, settle: Any) -> None:
        # RuntimeError: the loop is closed, and with it everybody who could have joined.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(settle)
