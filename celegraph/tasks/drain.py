"""The drain flag: one byte that the worker's main process sets and every pool child sees.

SIGTERM never reaches pool children, and Celery's own signals come too late for cold and soft
shutdowns; so the main process's handlers are wrapped, and the byte lies in a file that fork and spawn
children map alike.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

_ENV = "CELEGRAPH_DRAIN_FILE"
_PREFIX = "celegraph-flag-"
_SIGNALS = (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT)


class _Flag:
    """The mapping of this process; opened when first asked for, again after a fork is harmless."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.bytes: mmap.mmap | None = None
        self.handle: int | None = None  # in the main process: holds the file's lock

    def open(self) -> mmap.mmap | None:
        path = os.environ.get(_ENV)
        if path is None:
            return None
        if self.bytes is None or self.path != path:
            try:
                with open(path, "r+b") as file:
                    self.bytes, self.path = mmap.mmap(file.fileno(), 1), path
            except (OSError, ValueError):
                return None  # a worker that has gone took the file with it: nobody drains us any more
        return self.bytes


_flag = _Flag()


def prepare() -> None:
    """In the main process, before the pool starts: make the flag, lowered; remove those of killed workers."""
    _remove_orphans()
    while True:
        handle, path = tempfile.mkstemp(prefix=_PREFIX)
        # As long as this process and its forked children live; by it the next worker tells their file from
        # one that a SIGKILL has left.
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(path):
            break
        os.close(handle)  # another worker was quicker than the lock
    os.write(handle, b"\0")
    _flag.handle = handle
    os.environ[_ENV] = path


def dispose() -> None:
    """In the main process, at the end: remove the file."""
    path = os.environ.pop(_ENV, None)
    if path is not None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    if _flag.handle is not None:
        os.close(_flag.handle)
        _flag.handle = None


def _remove_orphans() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # OSError: somebody's who lives, another user's, or gone meanwhile.
        with contextlib.suppress(OSError), path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def requested(*, within: float = 0.0) -> bool:
    """This worker is going away: stop at the next step.  `within`: wait so many seconds for the flag."""
    flag = _flag.open()
    deadline = time.monotonic() + within
    while flag is not None and flag[0] != 1 and time.monotonic() < deadline:
        time.sleep(0.005)
    return flag is not None and flag[0] == 1


def raise_flag() -> None:
    """Ask every attempt of this worker to stop; safe in a signal handler."""
    flag = _flag.open()
    if flag is not None:
        flag[0] = 1


@dataclass(frozen=True)
class _Handler:
    """Celery's handler of a signal, after the flag has gone up."""

    celerys: Callable[[int, FrameType | None], Any]
    main_pid: int

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self.main_pid:  # a forked child inherits the handler until it resets it
            self.celerys(number, frame)
            return
        raise_flag()
        try:
            self.celerys(number, frame)
        except NotImplementedError:
            # A cold shutdown cancels what is at work, and only the prefork pool can: the threads and solo
            # pools end a step later.  In a solo worker this would come out of whatever line of the run is
            # being executed, and fail it.
            return
        finally:
            wrap_handlers()  # Celery has put others there, for the next signal


def wrap_handlers() -> None:
    """At t=0 of any shutdown the flag goes up, then Celery's own handler runs.  Main thread only."""
    for number in _SIGNALS:
        previous = signal.getsignal(number)
        if callable(previous) and not isinstance(previous, _Handler):
            signal.signal(number, _Handler(previous, os.getpid()))
