"""A broker that is down: gone, or there and silent.  Each outage returns what ends it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Protocol


class Server(Protocol):
    """What can be stopped and started again."""

    @property
    def pid(self) -> int: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


def stopped(server: Server) -> Callable[[], None]:
    """Nobody listens."""
    server.stop()
    return server.start


def frozen(server: Server) -> Callable[[], None]:
    """It accepts connections and does not answer."""
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)
