"""The pytest plugin for hosts: `drive` runs an agent in the test's own process, on a real PostgreSQL.

Loaded by every pytest run of everybody who has celegraph installed, so nothing heavy is imported
before a test asks for `drive`: no LangGraph, no Celery, no database driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from celegraph.testing.database import Ledger
    from celegraph.testing.driver import Driver


@pytest.fixture(scope="session")
def celegraph_database_url() -> Iterator[str]:
    """A PostgreSQL for the session: CELEGRAPH_TEST_DATABASE_URL, CELEGRAPH_DATABASE_URL, or our own.

    Override it to use another one.  Whatever it is, tests work in a schema of their own.
    """
    from celegraph.testing.database import database_url

    with database_url() as url:
        yield url


@pytest.fixture(scope="session")
def celegraph_ledger(celegraph_database_url: str) -> Iterator[Ledger]:
    """A schema for this session (under xdist: for each worker), migrated once, dropped at the end."""
    from celegraph.testing.database import fresh_ledger

    with fresh_ledger(celegraph_database_url) as ledger:
        yield ledger


@pytest.fixture
def drive(celegraph_ledger: Ledger) -> Driver:
    """`drive(agent, input, decisions=[...])` runs the agent as a worker would, until it ends or waits."""
    from celegraph.testing.driver import Driver

    return Driver(celegraph_ledger)
