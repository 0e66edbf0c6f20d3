"""The threads of this process that tell people things, beside its tasks.  What they do is in `notices`."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

# Seconds that a worker which is asked to stop gives to what is being told just now, by all channels together.
_LAST_WORDS = 10.0

# By process too: a forked child has none of its parent's threads.
_telling: dict[tuple[int, str], threading.Thread] = {}


def begin_telling(channel: str, work: Callable[[], object]) -> bool:
    """Run `work` in the channel's thread; False when that is still at it."""
    key = (os.getpid(), channel)
    thread = _telling.get(key)
    if thread is not None and thread.is_alive():
        return False
    _telling[key] = threading.Thread(target=work, name=f"celegraph-tell-{channel}", daemon=True)
    _telling[key].start()
    return True


def finish_telling() -> None:
    """Wait a little for the messages in hand: a process that leaves earlier leaves them in doubt."""
    until = time.monotonic() + _LAST_WORDS
    for (pid, _channel), thread in list(_telling.items()):
        if pid == os.getpid():
            thread.join(max(0.0, until - time.monotonic()))
