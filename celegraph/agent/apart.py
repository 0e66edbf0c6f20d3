"""A host's coroutine in a task of its own: whatever it does to its task touches nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def apart(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns or raises.  What it has returned counts, also when its task was cancelled in the
    same moment: asyncio calls such a task cancelled and forgets the value."""
    returned: list[T] = []

    async def run() -> None:
        returned.append(await work)

    try:
        await asyncio.ensure_future(run())
    except asyncio.CancelledError:
        if not returned:
            raise
    return returned[0]
