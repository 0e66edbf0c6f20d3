"""Times, names and strangers' texts as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
# A sentence that lists a hundred questions explains nothing.
_MOST_NAMED = 3
# Controls (line ends and tabs apart), marks that turn the direction of writing, and what is invisible: soft
# hyphens, fillers, and the tag characters in which a model's orders are smuggled past people.
# Joiners (200C, 200D) stay: emoji and several scripts are written with them.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)


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


def visible(text: str) -> str:
    """The text with everything in it that cannot be seen written out."""
    return _HIDDEN.sub(lambda found: _code(ord(found[0])), text.replace("\r\n", "\n"))


def _code(point: int) -> str:
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
