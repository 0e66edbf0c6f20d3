"""Spans of time as people write them in settings."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


def parse_duration(value: object) -> timedelta:
    """ "90s", "1h30m", "2d", seconds as a number, or a timedelta.  ValueError names what is wrong."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _seconds(value, value)
    text = str(value).strip().lower()
    parts = _PART.findall(text)
    if not parts or "".join(n + u for n, u in parts) != text:
        raise ValueError(f"{value!r} is not a duration; write '90s', '10m', '2h', '1d' or a timedelta")
    return _seconds(sum(float(n) * _UNITS[u] for n, u in parts), value)


def _seconds(seconds: float, given: object) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(f"{given!r} is longer than any duration") from None


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
Positive = Annotated[Duration, Field(gt=timedelta(0))]
