"""Full-text search over this project's own documentation, in the PostgreSQL that holds the runs.

python -m examples.support.search            # index README.md and docs/*.md of this repository
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import LiteralString, cast

import psycopg
from psycopg.rows import class_row

REPOSITORY = Path(__file__).resolve().parents[2]

# More words than this no question needs; they would only make the query slow.
_MAX_WORDS = 200
# A text of more different words than this is a report with a question in it.
_LONG = 80
# PostgreSQL refuses a query with a word of 2 KB; nothing a person can mean comes near.
_MAX_LETTERS = 100
_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*$")
_FENCE = re.compile(r"\s*(```|~~~)")


class DocsNotIndexed(RuntimeError):
    """The passages are not in this database: run `python -m examples.support.search` first."""


@dataclass(frozen=True)
class Section:
    """A heading of a page and the text under it."""

    page: str
    position: int
    title: str
    body: str


@dataclass(frozen=True)
class Passage:
    """A section that was found: its text, the part of it that fits, and how well it fits."""

    page: str
    title: str
    body: str
    headline: str
    rank: float


def index_docs(database_url: str, root: Path = REPOSITORY) -> int:
    """Make the table hold exactly the sections of `root`'s documentation; returns how many.

    May be repeated, also by two processes at once; a search meanwhile sees all old or all new.
    """
    sections = list(read_sections(root))
    with psycopg.connect(database_url) as conn:
        for query in ("lock", "create_schema", "create_passages", "create_index"):
            conn.execute(_SQL[query])
        conn.cursor().executemany(_SQL["put_passage"], [asdict(section) for section in sections])
        kept = {
            "pages": [section.page for section in sections],
            "positions": [section.position for section in sections],
        }
        conn.execute(_SQL["drop_leftovers"], kept)
    return len(sections)


def search(database_url: str, query: str, limit: int = 3) -> list[Passage]:
    """The passages that fit a customer's text best; none when nothing fits."""
    words = _words(query)
    if len(words) > _LONG:
        words = _words(_what_is_asked(query)) or words
    words = words[:_MAX_WORDS]
    # websearch_to_tsquery takes any text without a syntax error, and reads `or` as an operator.
    asked = {"query": " or ".join(words), "words": " ".join(words), "limit": limit}
    try:
        with psycopg.connect(database_url, row_factory=class_row(Passage)) as conn:
            return conn.execute(_SQL["search"], asked).fetchall()
    except psycopg.errors.UndefinedTable as missing:
        raise DocsNotIndexed("run `python -m examples.support.search` first") from missing


def _words(text: str) -> list[str]:
    found = dict.fromkeys(re.findall(r"\w+", text.lower()))
    return [word for word in found if len(word) <= _MAX_LETTERS]


def _what_is_asked(text: str) -> str:
    """The first line and the sentences that ask: the story in between would fit any page a little."""
    subject, _, body = text.partition("\n")
    sentences = re.split(r"(?<=[.?!])\s+", body)
    return " ".join([subject, *(sentence for sentence in sentences if sentence.endswith("?"))])


def read_sections(root: Path) -> Iterator[Section]:
    """README.md and docs/*.md, cut at their headings; headings without text are left out."""
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        if path.exists():
            page = path.relative_to(root).as_posix()
            yield from _cut(page, path.read_text(encoding="utf-8"))


def _cut(page: str, text: str) -> Iterator[Section]:
    position, title, lines, in_code = 0, page, list[str](), False
    for line in [*text.splitlines(), "# end of page"]:
        in_code ^= bool(_FENCE.match(line))
        # A comment in a shell example begins like a heading.
        heading = None if in_code else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        body = "\n".join(lines).strip()
        if body:
            yield Section(page, position, title, body)
            position += 1
        title, lines = heading[1], []


def _load(path: Path) -> dict[str, LiteralString]:
    """The named queries of a .sql file."""
    parts = re.split(r"^-- name: (\w+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    # The file is part of the code, which is what LiteralString stands for.
    return dict(zip(parts[1::2], cast(list[LiteralString], parts[2::2]), strict=True))


_SQL = _load(Path(__file__).with_name("search.sql"))

if __name__ == "__main__":
    index_docs(os.environ["CELEGRAPH_DATABASE_URL"])
