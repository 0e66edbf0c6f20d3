"""Celery's soft time limit asks the run to drain, instead of raising in the middle of the event loop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from celegraph.tasks import slot

# billiard's soft limit signal; never loop.add_signal_handler, which leaves SIG_DFL behind and kills the
# host's next task.
_SOFT = getattr(signal, "SIGUSR1", None)


@contextmanager
def draining_on_soft_limit() -> Iterator[None]:
    """For the length of the block the soft limit drains this slot's attempt.  Main thread only."""
    if _SOFT is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def drain(_number: int, _frame: FrameType | None) -> None:
        slot.drain_current("soft time limit")

    previous = signal.signal(_SOFT, drain)
    try:
        yield
    finally:
        signal.signal(_SOFT, previous)
