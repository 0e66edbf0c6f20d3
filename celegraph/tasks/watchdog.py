"""Ends a pool child whose event loop stands still for good; else its slot would never come back.

The sweep takes the run away after `hang_after`, but it does not reach the process.  faulthandler's timer
needs neither the loop nor the GIL: it fires under a regular expression that never ends, too, and prints
where every thread stands.
"""

from __future__ import annotations

import faulthandler
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from celegraph.config import Config

# Seconds.  Setting the timer starts a thread of its own; the loop is seen more often than that.
_RENEW_EVERY = 1.0
# Not sys.stderr: in a worker that is a logger, and nothing of Python can be trusted when the time comes.
_STDERR = 2


@dataclass
class _Process:
    """What this process is; only a prefork child may end itself: its one task is the one that hangs."""

    main: int = 0
    child: int = 0


_process = _Process()


def in_main() -> None:
    """This process is a worker's main process; forked children inherit the note."""
    _process.main = os.getpid()


def in_child(**_: object) -> None:
    """A pool process has come up.  The solo pool says so of the main process."""
    if os.getpid() != _process.main:
        _process.child = os.getpid()


@dataclass
class Watchdog:
    """To be told that the loop is alive."""

    after: float
    _renewed: float = field(default=float("-inf"))

    def alive(self) -> None:
        """From now on the loop has `after` seconds again."""
        if self.after and time.monotonic() > self._renewed + _RENEW_EVERY:
            self._renewed = time.monotonic()
            faulthandler.dump_traceback_later(self.after, exit=True, file=_STDERR)


@contextmanager
def watching(config: Config) -> Iterator[Watchdog]:
    """For the length of the block, in a pool child: without `alive` for `hang_after` and a lease more
    (the sweep shall be first: it knows a hang from a death) the process ends."""
    if _process.child != os.getpid():
        yield Watchdog(0)
        return
    try:
        yield Watchdog((config.hang_after + config.lease).total_seconds())
    finally:
        faulthandler.cancel_dump_traceback_later()
