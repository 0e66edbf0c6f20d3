"""A host's own open connection, lent to the ledger for a moment so that its writes join a transaction.

The host decided how its connection reads rows (tuples, jsonb as text, times in its own zone); the
ledger's statements go through cursors of our own on the same session, and nothing stays changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.abc import Params, QueryNoTemplate
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row
from psycopg.types.datetime import TimestamptzLoader
from psycopg.types.json import set_json_dumps, set_json_loads

from celegraph.config import Config
from celegraph.errors import ConfigError
from celegraph.ledger.connect import AnyConn, set_search_path
from celegraph.ledger.db_errors import as_ours
from celegraph.ledger.pool import ledger
from celegraph.ledger.spans import exact_spans

# A server that is up has one start time, whatever address or pooler leads to it.
_WHERE = b"""
SELECT pg_postmaster_start_time() AS started,
       (SELECT oid FROM pg_database WHERE datname = current_database()) AS database
"""


class Borrowed:
    """The ledger's view of a host's connection: the same session and transaction, our way to read."""

    def __init__(self, host: psycopg.Connection[Any]):
        self._host = host

    def execute(self, query: QueryNoTemplate, params: Params | None = None) -> psycopg.Cursor[DictRow]:
        """As `psycopg.Connection.execute`."""
        # Not `host.cursor()`: its class (Django's, SQLAlchemy's) is the host's choice too.
        cursor = psycopg.Cursor(self._host, row_factory=dict_row)
        # On this cursor alone.  Django loads jsonb as text, hosts replace json.dumps.
        set_json_loads(json.loads, cursor)
        set_json_dumps(json.dumps, cursor)
        cursor.adapters.register_loader("timestamptz", TimestamptzLoader)
        exact_spans(cursor.adapters)
        return cursor.execute(query, params)

    @property
    def usable(self) -> bool:
        """Neither lost nor in a transaction that can only be rolled back."""
        return self._host.info.transaction_status in (TransactionStatus.IDLE, TransactionStatus.INTRANS)


@contextmanager
def borrowed(connection: object, schema: str) -> Iterator[AnyConn]:
    """A host's open connection (psycopg 3, SQLAlchemy, or Django's), with our search_path for a moment.

    Commits nothing: what is written joins the host's transaction and falls with it.
    """
    conn = Borrowed(_driver_connection(connection))
    before = conn.execute("SELECT current_setting('search_path') AS path").fetchone()
    assert before is not None
    conn.execute(set_search_path(schema))
    try:
        yield conn
    except BaseException as error:
        # After a failed statement the host rolls back, and that takes the search_path with it.
        if conn.usable:
            _restore_path(conn, before["path"])
        if isinstance(error, psycopg.Error) and (ours := as_ours(error)) is not error:
            raise ours from error
        raise
    _restore_path(conn, before["path"])


def holds_ledger(connection: object, config: Config) -> bool:
    """Whether this connection leads to the database of `database_url`, perhaps by another road."""
    theirs = Borrowed(_driver_connection(connection)).execute(_WHERE).fetchone()
    with ledger(config) as conn:
        return theirs == conn.execute(_WHERE).fetchone()


def _restore_path(conn: AnyConn, path: str) -> None:
    conn.execute("SELECT set_config('search_path', %s, false)", (path,))


def _driver_connection(given: object) -> psycopg.Connection[Any]:
    connection: Any = given  # by shape: SQLAlchemy and Django are the host's choice
    for _ in range(4):
        if isinstance(connection, psycopg.Connection):
            return connection
        if hasattr(connection, "driver_connection"):  # SQLAlchemy's pooled DBAPI connection
            connection = connection.driver_connection
        elif callable(getattr(connection, "connection", None)):  # SQLAlchemy Session
            connection = connection.connection()
        elif getattr(connection, "connection", None) is not None:  # SQLAlchemy or Django Connection
            connection = connection.connection
        else:
            break
    raise ConfigError(
        f"connection= must be an open psycopg 3 or SQLAlchemy connection to the ledger's database,"
        f" not {type(given).__name__} (psycopg2 cannot join: install psycopg)"
    )
