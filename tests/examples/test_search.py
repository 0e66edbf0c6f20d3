"""Search over this project's own pages, in a real PostgreSQL."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import psycopg
import pytest

from examples.support.search import DocsNotIndexed, Section, index_docs, read_sections, search
from examples.support.tickets import load_tickets, read_ticket

TICKETS = {ticket["ticket_id"]: read_ticket(ticket) for ticket in load_tickets()}


@pytest.fixture
def docs(empty_database_url: str) -> str:
    """A database in which this repository's documentation is indexed."""
    index_docs(empty_database_url)
    return empty_database_url


def stored(database_url: str) -> list[tuple[str, str]]:
    with psycopg.connect(database_url) as conn:
        rows = conn.execute("SELECT page, title FROM support_demo.passages ORDER BY page, position")
        return [(page, title) for page, title in rows]


@pytest.mark.parametrize(
    ("ticket_id", "title"),
    [
        ("T-01", "A finished step does not run again"),
        ("T-03", "An e-mail is not sent twice"),
        ("T-04", "Deadline"),
        ("T-05", "What was approved is what is done"),
        ("T-07", "Connection poolers"),
        ("T-08", "A started run is not lost"),
        ("T-09", "Flower and logs"),
        ("T-11", "Deploys and drains"),
        ("T-13", "Redis and Valkey settings"),
        ("T-16", "Why does my run not move?"),
        ("T-18", "Quarantine and release"),
        ("T-21", "Changing an agent while runs are waiting"),
        ("T-25", "Two workers in production"),
        ("T-26", "A sleeping worker cannot spoil a run"),
        ("T-28", "Database backups and fail-over"),
    ],
)
def test_a_ticket_finds_the_section_that_answers_it(docs: str, ticket_id: str, title: str) -> None:
    found = search(docs, TICKETS[ticket_id].question, limit=5)

    assert title in [passage.title for passage in found]


def test_only_the_ticket_about_something_else_finds_nothing(docs: str) -> None:
    empty = [ticket_id for ticket_id, t in TICKETS.items() if not search(docs, t.question)]

    assert [TICKETS[ticket_id].subject for ticket_id in empty] == ["Sourdough smells of acetone"]


def test_a_passage_tells_where_it_is_from_and_the_part_that_fits(docs: str) -> None:
    best = search(docs, "Which connection pooler, PgBouncer or a direct address?", limit=1)[0]

    assert (best.page, best.title) == ("docs/operations.md", "Connection poolers")
    assert "PgBouncer" in best.headline
    assert len(best.headline) < len(best.body)
    assert best.rank > 0


@pytest.mark.parametrize("text", ["", "   ", "or and not", "' & | ! ( <->", "%s %(x)s {}", "x" * 9999])
def test_no_text_a_customer_can_write_breaks_the_search(docs: str, text: str) -> None:
    assert isinstance(search(docs, text), list)


def test_indexing_again_changes_nothing(docs: str) -> None:
    before = stored(docs)

    assert index_docs(docs) == len(before)
    assert stored(docs) == before


def test_sections_that_the_pages_no_longer_have_are_forgotten(
    empty_database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "a.md"
    page.write_text("# One\n\nfirst\n\n# Two\n\nsecond\n")
    index_docs(empty_database_url, tmp_path)

    page.write_text("# Two\n\nsecond\n")
    index_docs(empty_database_url, tmp_path)

    assert stored(empty_database_url) == [("docs/a.md", "Two")]


def test_processes_that_index_an_empty_database_at_once_all_succeed(
    empty_database_url: str,
) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        counts = pool.map(index_docs, [empty_database_url] * 4, chunksize=1)

    assert counts == [len(stored(empty_database_url))] * 4


def test_a_database_without_the_passages_says_what_to_run(empty_database_url: str) -> None:
    with pytest.raises(DocsNotIndexed, match=r"python -m examples\.support\.search"):
        search(empty_database_url, "anything")


def test_pages_are_cut_at_headings_and_comments_in_code_are_no_headings(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(
        "Before.\n# Top\n## First ##\ntext\n```\n# a comment\n```\n## Second\nmore\n"
    )

    assert list(read_sections(tmp_path)) == [
        Section("README.md", 0, "README.md", "Before."),
        Section("README.md", 1, "First", "text\n```\n# a comment\n```"),
        Section("README.md", 2, "Second", "more"),
    ]
