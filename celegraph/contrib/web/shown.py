"""How values are shown: cut, with nothing in them that moves a reader's eye, times as instants.

What a model or a stranger wrote decides what a person approves.  Markup is escaped by the templates;
characters that reorder or hide text are written out, so that what is read is what is bound.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from celegraph.ledger.canonical import decode_result
from celegraph.ledger.values import clean_json
from celegraph.tasks.words import visible

_SHORT = 80


@dataclass(frozen=True)
class Excerpt:
    """The beginning of a text; `more` letters of it are not shown."""

    text: str
    more: int = 0


def excerpt(value: object, longest: int = 2_000) -> Excerpt:
    """As text, cut to `longest` letters."""
    text = value if isinstance(value, str) else as_json(value)
    return Excerpt(visible(text[:longest]), max(0, len(text) - longest))


def stored(value: object, text: str | None = None, cut: bool = False) -> Excerpt:
    """A value in the ledger's encoding, or of one that is too long the beginning of its text."""
    if cut or value is None:
        return Excerpt(visible(text or ""), more=1 if cut else 0)
    found = decode_result(value)  # type: ignore[arg-type]  # what jsonb holds is JSON
    return excerpt(found if isinstance(found, str) else json.dumps(clean_json(found), ensure_ascii=False))


def one_line(value: object, longest: int = 120) -> str:
    """The beginning of a value, in a table's cell."""
    text = visible(" ".join(str(value).split()))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def as_json(value: object) -> str:
    """Any value as JSON for people: in one line if it is short."""
    clean = clean_json(value)
    short = json.dumps(clean, ensure_ascii=False)
    return short if len(short) <= _SHORT else json.dumps(clean, ensure_ascii=False, indent=2)


def when(at: datetime | None) -> Markup | str:
    """An instant in UTC; the script rewrites it in the viewer's own zone."""
    if at is None:
        return "-"
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        utc.isoformat(timespec="seconds").replace("+00:00", "Z"), f"{utc.day} {utc:%b %Y, %H:%M} UTC"
    )


def count(number: int, most: int | None = None) -> str:
    """1,234, or "more than" what was counted."""
    return f"{number:,}" if most is None or number < most else f"more than {most:,}"


def initial(text: str) -> str:
    """With its first letter in upper case."""
    return text[:1].upper() + text[1:]


def short_id(text: str) -> str:
    """An id that fits into a list: the middle of a long one is left out."""
    shown = visible(unicodedata.normalize("NFC", text))
    return shown if len(shown) <= 36 else f"{shown[:24]}…{shown[-8:]}"


FILTERS: dict[str, Any] = {
    "excerpt": excerpt,
    "stored": stored,
    "tojson_plain": as_json,
    "visible": visible,
    "one_line": one_line,
    "when": when,
    "count": count,
    "initial": initial,
    "short_id": short_id,
}
