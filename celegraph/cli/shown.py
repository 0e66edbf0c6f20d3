"""How things are printed: JSON for programs, tables for people, and nothing that moves a terminal.

Prompts and reasons come from models and strangers; control characters in them are made visible.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from celegraph.cli.options import Settings

# Columns in a pipe: nothing may be folded or cut there, `grep` and `awk` want whole lines.
_WIDE = 100_000


def say_error(settings: Settings, message: str) -> None:
    """One line: on stderr for people, as {"error": ...} on stdout for programs."""
    line = visible(" ".join(message.split()))
    if settings.json:
        say_json({"error": line})
    else:
        click.echo(f"error: {line}", err=True)


def say_json(value: object) -> None:
    """Plain JSON; instants as ISO 8601 in UTC, spans in seconds."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def say(text: str) -> None:
    """Text for people, as it is: no markup in it is obeyed."""
    _console().print(Text(visible(text)), soft_wrap=True)


def say_table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> None:
    """Aligned columns under their names; one line per row when printed into a pipe."""
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(visible(cell)) for cell in row))
    _console().print(table)


def visible(text: str) -> str:
    """The text with control characters written out; line ends stay."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def instant(at: datetime | None) -> str:
    """An instant in UTC, to the second, or a dash."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}" if at else "-"


def pairs(data: Mapping[str, Any]) -> str:
    """key=value, in order; what is no plain text as JSON."""
    return " ".join(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in data.items())


def chosen(source: object, names: Iterable[str]) -> dict[str, Any]:
    """Some attributes of a record, for JSON."""
    return {name: getattr(source, name) for name in names}


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"{type(value).__name__} is not for printing")
