"""A thousand open questions: a page costs the same number of statements and little time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from celegraph.agent.migrate import migrate
from celegraph.dev.home import Home
from celegraph.dev.postgres import Postgres
from celegraph.ledger.pool import close_pools
from tests.contrib.web.crowd import crowded, pages_of, request_of

# Milliseconds of this process's own processor time; measured here: about 10.
_GENEROUS = 100


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server of our own, whose log tells every statement."""
    with Postgres(Home.passing(in_memory=True), fsync=False) as server:
        migrate(server.url)
        with psycopg.connect(server.url, autocommit=True) as conn:
            conn.execute("ALTER SYSTEM SET log_statement = 'all'")
            conn.execute("ALTER SYSTEM SET log_line_prefix = '%a|'")
            conn.execute("SELECT pg_reload_conf()")
        yield server
        close_pools()


def _statements(log: Path) -> int:
    lines = log.read_text(errors="replace").splitlines()
    ours = (line for line in lines if line.startswith("celegraph web|"))
    return sum("LOG:  execute" in line or "LOG:  statement:" in line for line in ours)


@pytest.mark.parametrize("name", ["inbox", "runs", "approval", "run"])
def test_page_asks_as_often_for_a_thousand_as_for_one(server: Postgres, name: str) -> None:
    pages = pages_of(server.url)
    log = server.directory / "log"

    def asked(questions: int) -> int:
        crowded(server.url, questions)
        pages.respond(*request_of(name))  # the pool is open, and the statements are prepared
        before = _statements(log)
        assert pages.respond(*request_of(name)).status == 200
        return _statements(log) - before

    few = asked(1)
    assert few > 0
    assert asked(1000) == few < 20


def test_inbox_of_a_thousand_questions_takes_little_time(server: Postgres) -> None:
    pages = pages_of(server.url)
    crowded(server.url, 1000)
    pages.respond(*request_of("inbox"))

    started = time.process_time()
    for _ in range(5):
        pages.respond(*request_of("inbox"))
    mine = (time.process_time() - started) / 5 * 1000

    assert mine < _GENEROUS
