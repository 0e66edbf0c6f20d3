"""`task_always_eager`: the run is driven in the caller's thread until it ends or waits."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from celegraph.tasks.advance import Advanced, advance
from celegraph.tasks.installation import Installation
from celegraph.tasks.slot import current_slot


def drive_inline(inst: Installation, run_id: str) -> Advanced:
    """Advance the run until it ends, waits or sleeps; the same code a worker runs, the same database."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _until_rest(inst, run_id)
    # The caller is async (an ASGI view under test): a loop cannot run inside a loop.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_in_a_passing_thread, inst, run_id).result()


def _in_a_passing_thread(inst: Installation, run_id: str) -> Advanced:
    try:
        return _until_rest(inst, run_id)
    finally:
        current_slot(inst.config).discard()  # nobody comes back to this thread's pen and heart


def _until_rest(inst: Installation, run_id: str) -> Advanced:
    while True:
        advanced = advance(inst, run_id)
        if not advanced.ring:
            return advanced
