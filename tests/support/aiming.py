"""The one instant no ledger covers: between a claim's last check and the call's first byte on the wire.

A machine that sleeps in it for longer than the claim counts acts late, and docs/guarantees.md says so.
Whoever stops processes at random must therefore leave alone those that are aiming just now.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.gates import DIRECTORY

_SENT = "send_request_body.complete"


def _mark_of(directory: Path, pid: int, thread: int) -> Path:
    return directory / "aiming" / f"{pid}-{thread}"


@contextmanager
def aiming() -> Iterator[Callable[[str, Any], None]]:
    """From the block's start until the request is on the wire; yields httpx's `trace`, which tells."""
    mark = _mark_of(Path(os.environ[DIRECTORY]), os.getpid(), threading.get_ident())
    mark.parent.mkdir(exist_ok=True)
    mark.touch()

    def trace(event: str, _: Any) -> None:
        if event.endswith(_SENT):
            mark.unlink(missing_ok=True)

    try:
        yield trace
    finally:
        mark.unlink(missing_ok=True)


def aims(directory: Path, pid: int) -> bool:
    """This process is aiming (true until it goes on, when it has been stopped)."""
    return any((directory / "aiming").glob(f"{pid}-*"))
