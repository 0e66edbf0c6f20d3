"""Times and names as people read them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
# A sentence that lists a hundred questions explains nothing.
_MOST_NAMED = 3


def span(seconds: float) -> str:
    """How long, in the two largest units that matter: "3 s", "5 min", "2 h 10 min", "4 d 3 h"."""
    left = max(0, round(seconds))
    for index, (size, unit) in enumerate(_UNITS):
        if left >= size:
            whole, rest = divmod(left, size)
            small, small_unit = _UNITS[index + 1] if index < 2 else (0, "")
            more = f" {rest // small} {small_unit}" if small and rest >= small else ""
            return f"{whole} {unit}{more}"
    return "0 s"


def moment(at: datetime) -> str:
    """An instant, to the second, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def listed(names: Iterable[str]) -> str:
    """The first few by name, the rest as a number."""
    names = list(names)
    shown = ", ".join(names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"
