"""The web side's connections over an outage of the database, and when all of them are busy."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from celegraph.config import Config, load_config
from celegraph.dev.postgres import Postgres
from celegraph.ledger.pool import SOON, close_pools, ledger
from tests.chaos.role import ROLE, prepare

SIZE = 8
# Seconds.  psycopg tries again after 1, 3, 7, 15 and 31: a pool that did not give up would next look 15
# seconds later than this, which is longer than a request waits.
LONG = 16.0


@pytest.fixture
def config(own_postgres: Postgres) -> Iterator[Config]:
    """A ledger that this process has used before, with all connections it can have."""
    config = load_config({"database_url": own_postgres.url})
    with all_busy(config):
        pass
    yield config
    close_pools()


@contextmanager
def all_busy(config: Config) -> Iterator[None]:
    """For the block's length eight threads have a connection each."""
    let_go = threading.Event()
    held = threading.Barrier(SIZE + 1, timeout=30)

    def hold() -> None:
        with ledger(config):
            held.wait()
            let_go.wait()

    with ThreadPoolExecutor(SIZE) as threads:
        for _ in range(SIZE):
            threads.submit(hold)
        try:
            held.wait()
            yield
        finally:
            let_go.set()


def answers(config: Config) -> bool:
    with ledger(config) as conn:
        return conn.execute("SELECT 1 AS one").fetchone() == {"one": 1}


def test_a_database_that_was_away_for_long_is_used_again_as_soon_as_it_is_back(
    config: Config, own_postgres: Postgres
) -> None:
    own_postgres.stop()
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        # What is the matter, and not only that there was no connection.
        with pytest.raises(psycopg.OperationalError, match="refused"):
            answers(config)

    own_postgres.start()

    assert answers(config)


def test_a_restart_between_two_requests_costs_no_request_an_error(
    config: Config, own_postgres: Postgres
) -> None:
    own_postgres.stop()
    own_postgres.start()

    assert all(answers(config) for _ in range(SIZE + 1))


def test_a_request_waits_while_all_connections_are_busy_and_none_is_opened_beside_them(
    own_postgres: Postgres,
) -> None:
    url, admin_url = prepare(own_postgres.url)
    config = load_config({"database_url": url})
    with ThreadPoolExecutor(1) as threads, psycopg.connect(admin_url, autocommit=True) as admin:
        with all_busy(config):
            admin.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT 0".encode())
            with pytest.raises(psycopg.OperationalError, match="too many connections"):
                psycopg.connect(url)
            waiting = threads.submit(answers, config)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=2 * SOON)  # longer than until it would ask whether the server is there
        assert waiting.result(timeout=30)
    close_pools()
