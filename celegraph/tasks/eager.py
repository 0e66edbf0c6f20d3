"""`task_always_eager`: the run is driven in the caller's thread until it ends or waits."""

from __future__ import annotations

import asyncio
import threading

from celegraph.tasks.advance import Advanced, advance
from celegraph.tasks.installation import Installation
from celegraph.tasks.slot import close_current


def drive_inline(inst: Installation, run_id: str) -> Advanced:
    """Advance the run until it ends, waits or sleeps; the same code a worker runs, the same database."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _until_rest(inst, run_id)
    # The caller is async (an ASGI view under test): a loop cannot run inside a loop.
    found: list[Advanced] = []

    def work() -> None:
        try:
            found.append(_until_rest(inst, run_id))
        finally:
            close_current()  # the slot is this thread's, and nobody else could close it

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


def _until_rest(inst: Installation, run_id: str) -> Advanced:
    while True:
        advanced = advance(inst, run_id)
        if not advanced.ring:
            return advanced
