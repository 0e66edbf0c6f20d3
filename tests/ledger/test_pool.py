"""The web side's connections over an outage of the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from celegraph.config import Config, load_config
from celegraph.dev.postgres import Postgres
from celegraph.ledger.connect import close_pools, ledger

# Seconds after which the pauses of a pool that never gives up are longer than anybody waits.
LONG = 16.0


@pytest.fixture
def config(own_postgres: Postgres) -> Iterator[Config]:
    """A ledger whose connections this process has used before."""
    config = load_config({"database_url": own_postgres.url})
    with ledger(config) as conn:
        conn.execute("SELECT 1")
    yield config
    close_pools()


def test_a_database_that_was_away_for_long_is_used_again_as_soon_as_it_is_back(
    config: Config, own_postgres: Postgres
) -> None:
    own_postgres.stop()
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        # What is the matter, and not only that there was no connection.
        with pytest.raises(psycopg.OperationalError, match="refused"), ledger(config):
            pass

    own_postgres.start()

    with ledger(config) as conn:
        assert conn.execute("SELECT 1 AS one").fetchone() == {"one": 1}


def test_a_request_waits_while_all_connections_are_busy_and_no_more_are_made(config: Config) -> None:
    held, let_go = threading.Barrier(9), threading.Event()

    def hold() -> None:
        with ledger(config):
            held.wait()
            let_go.wait()

    def use() -> int:
        with ledger(config) as conn:
            row = conn.execute(
                "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'celegraph web'"
            ).fetchone()
            assert row is not None
            return int(row["n"])

    with ThreadPoolExecutor(9) as threads:
        try:
            for _ in range(8):
                threads.submit(hold)
            held.wait()
            waiting = threads.submit(use)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=2.5)  # longer than until it asks whether the server is there
        finally:
            let_go.set()
        assert waiting.result(timeout=30) <= 8
