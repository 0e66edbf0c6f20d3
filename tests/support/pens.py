"""A pen outside of a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from celegraph.config import Config
from celegraph.ledger.pen import Pen

T = TypeVar("T")


def with_pen(config: Config, work: Callable[[Pen], Coroutine[Any, Any, T]]) -> T:
    """What `work` returns, on a loop and with a pen of its own."""

    async def run() -> T:
        pen = await Pen.open(config)
        try:
            return await work(pen)
        finally:
            await pen.close()

    return asyncio.run(run())
