"""What an attempt has left behind on its slot: calls in flight, node threads, forgotten tasks."""

from __future__ import annotations

import asyncio
import time

from celegraph.agent.attempt import Attempt
from celegraph.tasks.slot import Slot

# Seconds to wait for what an attempt left behind before the whole slot is thrown away.
_WAIT = 5.0


async def clear_leftovers(slot: Slot, attempt: Attempt, ticker: asyncio.Future[None]) -> bool:
    """Cancel and await what the attempt started.  False: something is still alive and might write.

    Calls in flight are first given the time they were promised, and a little to be recorded: that is worth
    more than haste.
    """
    now = time.monotonic()
    recorded = max(attempt.promised_until, now) + _WAIT
    if attempt.working:
        await asyncio.wait(attempt.working, timeout=recorded - now)
    # Node threads before tasks: a thread that records its call does so through a task on this loop.
    deadline = time.monotonic() + _WAIT
    while slot.executor.busy and time.monotonic() < (recorded if attempt.calling else deadline):
        await asyncio.sleep(0.01)
    ours = (asyncio.current_task(), ticker)
    tasks = [t for t in asyncio.all_tasks() if t not in ours]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_WAIT)
    return slot.executor.busy == 0 and all(t.done() for t in tasks)
