"""A host whose clock is wrong: an app whose process has another time of day, by the environment.

Only the time of day: waiting, the monotonic clock and PostgreSQL's are right.  (libfaketime would do it
for C code as well, but its 0.9.10 breaks the sleep of Python 3.11.)
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import time_machine

from tests.support import app as ours

APP = "tests.support.skewed:app"
_OFF_BY = "CELEGRAPH_TEST_CLOCK_OFF_BY"


def clock_off_by(seconds: int) -> dict[str, str]:
    """Environment of a process with `APP`."""
    return {_OFF_BY: str(seconds)}


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(name)
    if not time_machine.escape_hatch.is_travelling():
        off = timedelta(seconds=int(os.environ[_OFF_BY]))
        # Its children inherit it.
        time_machine.travel(datetime.now(UTC) + off, tick=True).start()
    return ours.app
