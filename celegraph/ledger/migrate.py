"""Numbered SQL files, applied once each, under one advisory lock, up only.

LangGraph's own tables are part of the same schema and are made under the same lock (alone its set-up
races); the caller passes that step in, because LangGraph is not known at this layer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources

import psycopg
from psycopg import sql
from psycopg.rows import DictRow, dict_row

from celegraph.errors import SchemaMissing, SchemaOutOfDate, SchemaTooNew
from celegraph.ledger.pooler import refuse_transaction_pooler

# Any constant will do as long as it never changes: old and new code must wait for each other.
_MIGRATION_LOCK = 0x63656C65_67726170  # "celegrap"
_FILE = re.compile(r"^(\d{4})_(\w+)\.(pre|post)\.sql$")


@dataclass(frozen=True)
class Migration:
    """One file; `pre` is safe while old workers run, `post` wants them gone."""

    version: int
    name: str
    phase: str
    text: str


@dataclass(frozen=True)
class MigrationReport:
    """What a migrate run did: versions applied now, and the version it left behind."""

    applied: list[int]
    version: int


def migrations() -> list[Migration]:
    """All migration files in order."""
    folder = resources.files("celegraph.ledger").joinpath("sql/migrations")
    found = []
    for file in folder.iterdir():
        if match := _FILE.match(file.name):
            found.append(Migration(int(match[1]), match[2], match[3], file.read_text("utf-8")))
    return sorted(found, key=lambda m: m.version)


def latest_version() -> int:
    """The schema version this code needs."""
    return migrations()[-1].version


def apply(
    database_url: str, schema: str, checkpoint_tables: Callable[[psycopg.Connection[DictRow]], None]
) -> MigrationReport:
    """Bring `schema` up to date.  Safe from many processes at once; each migration is a transaction."""
    # There the lock below would stay on a backend of the pooler's, and every later migrate wait for it.
    refuse_transaction_pooler(database_url)
    # Autocommit and a connection of its own: LangGraph builds indexes CONCURRENTLY, which no open
    # transaction allows, and session locks end with the session.
    with psycopg.connect(database_url, autocommit=True, row_factory=dict_row) as conn:
        # Polled, not awaited: a session waiting inside a statement holds a snapshot, and CREATE INDEX
        # CONCURRENTLY of the process that has the lock would wait for that for ever (a deadlock).
        _lock_by_polling(conn)
        conn.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        conn.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
        checkpoint_tables(conn)
        conn.execute(
            "CREATE TABLE IF NOT EXISTS migrations (version integer PRIMARY KEY, name text NOT NULL,"
            " applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
        )
        # What older code must know of a migration that it has never heard of.
        conn.execute("ALTER TABLE migrations ADD COLUMN IF NOT EXISTS phase text NOT NULL DEFAULT 'post'")
        done = _version(conn)
        _refuse_newer(conn)
        applied = []
        for migration in migrations():
            if migration.version > done:
                _run(conn, migration)
                applied.append(migration.version)
        return MigrationReport(applied, max(done, latest_version()))


def _lock_by_polling(conn: psycopg.Connection[DictRow]) -> None:
    while True:
        row = conn.execute("SELECT pg_try_advisory_lock(%s) AS locked", (_MIGRATION_LOCK,)).fetchone()
        if row is not None and row["locked"]:
            return
        conn.execute("SELECT pg_sleep(0.05)")


def _run(conn: psycopg.Connection[DictRow], migration: Migration) -> None:
    with conn.transaction():
        conn.execute(migration.text.encode())
        conn.execute(
            "INSERT INTO migrations (version, name, phase) VALUES (%s, %s, %s)",
            (migration.version, migration.name, migration.phase),
        )


def _version(conn: psycopg.Connection[DictRow]) -> int:
    row = conn.execute("SELECT coalesce(max(version), 0) AS version FROM migrations").fetchone()
    assert row is not None
    return int(row["version"])


def _refuse_newer(conn: psycopg.Connection[DictRow]) -> None:
    """A newer release's `pre` migrations are made for this code, too: it works on while a deploy is under
    way, and its children and restarts must as well.  Its `post` migrations are not."""
    row = conn.execute(
        # Through jsonb, because a table of the first release has no such column.
        "SELECT max(version) AS version FROM migrations m"
        " WHERE version > %s AND coalesce(to_jsonb(m) ->> 'phase', 'post') <> 'pre'",
        (latest_version(),),
    ).fetchone()
    if row is not None and row["version"] is not None:
        raise SchemaTooNew(
            f"the ledger's tables are at version {row['version']}, this code knows {latest_version()};"
            " upgrade celegraph here"
        )


def check_schema(conn: psycopg.Connection[DictRow]) -> int:
    """The schema's version, if this code can work with it; else the error that says what to do."""
    row = conn.execute("SELECT to_regclass('migrations') IS NOT NULL AS there").fetchone()
    if row is None or not row["there"]:
        raise SchemaMissing("the ledger's tables are not there; run `celegraph migrate`")
    version = _version(conn)
    _refuse_newer(conn)
    if version < latest_version():
        raise SchemaOutOfDate(
            f"the ledger's tables are at version {version}, this code needs {latest_version()};"
            " run `celegraph migrate`"
        )
    return version
