"""A client whose background task is cancelled with its connection, and that lets the error through."""

from __future__ import annotations

import asyncio

VICTIMS = ("a task of its own", "itself")


async def cancelled(victim: str) -> None:
    """Cancel one of `VICTIMS`, and let the caller see it."""
    itself = asyncio.current_task()
    assert itself is not None
    task = itself if victim == "itself" else asyncio.create_task(asyncio.sleep(3600))
    task.cancel()
    await (asyncio.sleep(0) if task is itself else task)
