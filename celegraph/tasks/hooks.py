"""What a framework's door wants done around the host's code in a worker.  Empty without a door."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger("celegraph")

Hook = Callable[[], object]

# Called before and after, in the thread that runs a sync node: it keeps what the framework keeps per thread.
around_node: list[Hook] = []
# Called before and after, in the slot's thread.  Must not wait: a node may hang, the attempt must end.
around_attempt: list[Hook] = []


@contextmanager
def calling(hooks: list[Hook]) -> Iterator[None]:
    """Call every hook before the block and after it, however it ends."""
    _call(hooks)
    try:
        yield
    finally:
        _call(hooks)


def _call(hooks: list[Hook]) -> None:
    for hook in hooks:
        try:
            hook()
        except Exception as error:
            # Housekeeping: a node that needs what could not be put in order fails by itself.
            logger.warning("hook failed", extra={"error": type(error).__name__})
