"""Where the tests' database comes from, and the schema a session has in it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from celegraph.ledger.for_tests import PREFIX, drop_schema

VARIABLES = ("CELEGRAPH_TEST_DATABASE_URL", "CELEGRAPH_DATABASE_URL")


@dataclass(frozen=True)
class Ledger:
    """A migrated schema that belongs to this test session alone."""

    database_url: str
    schema: str


@contextmanager
def database_url() -> Iterator[str]:
    """The environment's PostgreSQL, else one started for the length of the block."""
    named = next((os.environ[name] for name in VARIABLES if os.environ.get(name)), None)
    if named is not None:
        yield named
        return
    # Here and not above: a machine with a URL needs none of what starts servers.
    from celegraph.dev.errors import ServerNotFound
    from celegraph.dev.home import Home
    from celegraph.dev.postgres import Postgres

    try:
        server = Postgres(Home.passing(in_memory=True), fsync=False)
        server.__enter__()
    except ServerNotFound as error:
        raise ServerNotFound(
            f"the drive fixture needs a PostgreSQL: set {' or '.join(VARIABLES)},"
            " or install one for tests with: pip install 'celegraph[local]'"
        ) from error
    try:
        yield server.url
    finally:
        server.__exit__(None, None, None)


@contextmanager
def fresh_ledger(url: str) -> Iterator[Ledger]:
    """A new schema with all tables, dropped after the block."""
    from celegraph.agent.migrate import migrate

    ledger = Ledger(url, f"{PREFIX}{uuid.uuid4().hex[:12]}")
    migrate(ledger.database_url, ledger.schema)
    try:
        yield ledger
    finally:
        drop_schema(ledger.database_url, ledger.schema)
