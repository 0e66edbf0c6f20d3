"""Turns: how many of a worker's slots its duties may have at once.

The outbox and the doubts are seen to on the slots that also drive runs, because they call the host's
functions.  A provider that hangs would take one slot after the other; the last one is left to the runs.
A turn is a session lock of the slot's pen: it ends with `leases.release`, and with whatever ends the process.
"""

from __future__ import annotations

import os
import uuid

from celegraph.ledger import leases
from celegraph.ledger.pen import Pen

_ENV = "CELEGRAPH_TURNS"


def prepare(slots: int) -> None:
    """In a worker's main process, before the pool starts: all slots but one, and always one."""
    os.environ[_ENV] = f"{uuid.uuid4().hex}:{max(1, slots - 1)}"


async def take(pen: Pen) -> bool:
    """A turn of this worker; False: all are taken.  Outside of a worker there is always one."""
    worker, _, number = os.environ.get(_ENV, "").rpartition(":")
    if not worker:
        return True
    for turn in range(int(number)):
        # No run's lock: a run_id has no line ends.
        if await leases.try_lock(pen, f"turn\n{worker}\n{turn}"):
            return True
    return False
