"""A real death in the middle of an attempt, cheap: a forked child that has everything imported."""

from __future__ import annotations

import os
from collections.abc import Callable

DEATH = 9


def die() -> None:
    """End this process now: no `finally`, no goodbye to the database."""
    os._exit(DEATH)


def process_dies(work: Callable[[], object]) -> None:
    """Run `work` in a child process, in which it must come to `die()`."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == DEATH, "the child lived to its end"
