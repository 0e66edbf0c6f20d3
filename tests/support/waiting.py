"""Waiting on a fact instead of on seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(fact: Callable[[], T], within: float = 15.0) -> T:
    """The first true value of `fact()`; AssertionError, with the last value, if none comes."""
    deadline = time.monotonic() + within
    while not (value := fact()):
        if time.monotonic() > deadline:
            raise AssertionError(f"still {value!r} after {within} s")
        time.sleep(0.01)
    return value
