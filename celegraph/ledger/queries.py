"""Named SQL from the `.sql` files beside this module: `QUERIES.leases.begin` is bytes for psycopg.

A block starts at `-- name: x`.  Nothing is ever formatted into the text; values travel as parameters
and the schema through the session's search_path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_PARAMETER = re.compile(rb"%(?:%|\((\w+)\)s)")


class Queries:
    """The queries of one file; an unknown name is an AttributeError that lists the known ones."""

    def __init__(self, file: str, texts: dict[str, bytes]):
        self._file = file
        self._texts = texts

    def __getattr__(self, name: str) -> bytes:
        try:
            return self._texts[name]
        except KeyError:
            raise AttributeError(f"{self._file}.sql has no query {name!r}: {sorted(self._texts)}") from None

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """Names and texts, in the file's order."""
        return iter(self._texts.items())


@cache
def load(file: str) -> Queries:
    """The named queries of `sql/queries/<file>.sql`."""
    return parse(
        file, resources.files("celegraph.ledger").joinpath(f"sql/queries/{file}.sql").read_text("utf-8")
    )


def parse(file: str, text: str) -> Queries:
    """The named queries of a text in that form; `file` is how errors call it."""
    parts = _NAME.split(text)
    return Queries(file, {n: q.strip().encode() for n, q in zip(parts[1::2], parts[2::2], strict=True)})


@cache
def numbered(query: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The query as PostgreSQL itself reads it, with $1 for its first parameter; and the parameters' names."""
    numbers: dict[bytes, int] = {}

    def number(match: re.Match[bytes]) -> bytes:
        name = match[1]
        return b"%" if name is None else b"$%d" % numbers.setdefault(name, len(numbers) + 1)

    text = _PARAMETER.sub(number, query)
    return text, tuple(name.decode() for name in numbers)
