"""Connections and runs for tests that talk to the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from celegraph.config import Config, load_config
from celegraph.ledger import runs
from celegraph.ledger.connect import Conn, connect
from celegraph.ledger.runs import Admission


@pytest.fixture
def config(database_url: str) -> Config:
    """The configuration of a migrated database for this test alone."""
    return load_config({"database_url": database_url})


@pytest.fixture
def conn(config: Config) -> Iterator[Conn]:
    """One autocommit connection."""
    with connect(config) as conn:
        yield conn


@pytest.fixture
def admit(conn: Conn) -> Callable[[str], str]:
    """Admit a run of this id."""

    def admit(run_id: str) -> str:
        runs.admit(conn, Admission(run_id, "agent", {"n": 1}, max_crashes=3))
        return run_id

    return admit
