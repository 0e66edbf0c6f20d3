"""Real servers for the whole suite: one pair per pytest process, started when first asked for.

The environment's URLs are ignored on purpose: tests drop databases and empty brokers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import redis

import celegraph.testing
from celegraph.agent.migrate import migrate
from celegraph.dev.home import Home
from celegraph.dev.postgres import Postgres
from celegraph.dev.valkey import Valkey
from celegraph.testing.database import Ledger
from celegraph.testing.driver import Driver
from tests.support.databases import fresh_database, migrated_template
from tests.support.log import Log

# As in workers; LangGraph reads it when the first test module imports it.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("celegraph", deadline=None)
hypothesis.settings.load_profile("celegraph")


def pytest_configure(config: pytest.Config) -> None:
    """Our own plugin, also in a checkout that is not installed and so has no entry point."""
    if not config.pluginmanager.has_plugin("celegraph"):
        config.pluginmanager.register(celegraph.testing, "celegraph")


@pytest.fixture(autouse=True)
def no_project_is_left_in_the_environment() -> Iterator[None]:
    """A Django project that a test has imported names itself there, and Celery would set it up in the
    workers of every later test."""
    before = os.environ.get("DJANGO_SETTINGS_MODULE")
    yield
    if before is None:
        os.environ.pop("DJANGO_SETTINGS_MODULE", None)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """Shared by all tests: do not stop it; fault tests start `LocalServers` of their own."""
    with Postgres(Home.passing(in_memory=True), fsync=False) as server:
        yield server


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[Valkey]:
    """Shared by all tests: do not stop it; fault tests start `LocalServers` of their own."""
    with Valkey(Home.passing(in_memory=True), fsync=False) as server:
        yield server


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A migrated database of this test's own, to stop and to restart."""
    with Postgres(Home.passing(in_memory=True), fsync=False) as server:
        migrate(server.url)
        yield server


@pytest.fixture
def own_broker() -> Iterator[Valkey]:
    """A broker of this test's own, to stop, to freeze and to restart."""
    with Valkey(Home.passing(in_memory=True), fsync=False) as server:
        yield server


@pytest.fixture(scope="session")
def database_template(postgres_server: Postgres) -> str:
    """The name of a migrated database that each test's is copied from."""
    return migrated_template(postgres_server.url)


@pytest.fixture(scope="session")
def celegraph_database_url(postgres_server: Postgres) -> Iterator[str]:
    """The server of the suite for `drive`, which makes a schema of its own here."""
    with fresh_database(postgres_server.url) as url:
        yield url


@pytest.fixture
def empty_database_url(postgres_server: Postgres) -> Iterator[str]:
    """A database without our tables, for this test alone."""
    with fresh_database(postgres_server.url) as url:
        yield url


@pytest.fixture
def database_url(postgres_server: Postgres, database_template: str) -> Iterator[str]:
    """A migrated database for this test alone."""
    with fresh_database(postgres_server.url, database_template) as url:
        yield url


@pytest.fixture(scope="module")
def module_database_url(postgres_server: Postgres, database_template: str) -> Iterator[str]:
    """A migrated database for the tests of one file together."""
    with fresh_database(postgres_server.url, database_template) as url:
        yield url


def _emptied(server: Valkey) -> str:
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
    return server.url


@pytest.fixture
def broker_url(valkey_server: Valkey) -> str:
    """An empty broker."""
    return _emptied(valkey_server)


@pytest.fixture(scope="module")
def module_broker_url(valkey_server: Valkey) -> str:
    """A broker that is empty when the tests of one file begin."""
    return _emptied(valkey_server)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """What nodes and providers really did."""
    return Log(tmp_path / "log")


@pytest.fixture
def lonely_drive(database_url: str) -> Driver:
    """For tests that sweep: nobody else's runs are in this database."""
    return Driver(Ledger(database_url, "celegraph"))
