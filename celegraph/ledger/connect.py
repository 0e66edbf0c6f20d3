"""Connections to the ledger: plain ones, a small pool for the web side, and a host's own, borrowed.

Everything that must not be forgotten about a connection is said here once: the schema's search_path,
keepalives, and that a pool never crosses a fork.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from celegraph.config import Config
from celegraph.errors import ConfigError
from celegraph.ledger.db_errors import as_ours
from celegraph.ledger.migrate import check_schema
from celegraph.ledger.pooler import refuse_transaction_pooler

Conn = psycopg.Connection[DictRow]

# Seconds.  A dead host must be noticed within a lease, not after the kernel's two hours.
KEEPALIVE: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "connect_timeout": 10,
}


def set_search_path(schema: str) -> sql.Composed:
    """The statement that makes unqualified names ours; a schema is an identifier, never a parameter."""
    return sql.SQL("SET search_path TO {}, public").format(sql.Identifier(schema))


def connect(config: Config, *, application: str = "celegraph") -> Conn:
    """One autocommit connection of its own, search_path set.  The caller closes it."""
    conn = psycopg.connect(
        config.database_url,
        autocommit=True,
        row_factory=dict_row,
        prepare_threshold=0,
        application_name=application,
        **KEEPALIVE,
    )
    conn.execute(set_search_path(config.schema_name))
    return conn


_pools: dict[tuple[int, str, str], ConnectionPool[Conn]] = {}
_pools_lock = threading.Lock()


def _renew_lock() -> None:
    # A thread of the parent may have had it at the moment of the fork; in the child nobody frees it.
    global _pools_lock
    _pools_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def _pool(config: Config) -> ConnectionPool[Conn]:
    # The pid is part of the key: a child must never use its parent's sockets.  The parent's pool object
    # is left alone in the child; psycopg closes nothing there that another process opened.
    key = (os.getpid(), config.database_url, config.schema_name)
    with _pools_lock:
        if key not in _pools:
            refuse_transaction_pooler(config.database_url)
            with connect(config) as probe:
                check_schema(probe)
            _pools[key] = _open_pool(config)
        return _pools[key]


def _open_pool(config: Config) -> ConnectionPool[Conn]:
    def configure(conn: Conn) -> None:
        conn.execute(set_search_path(config.schema_name))

    return ConnectionPool(
        config.database_url,
        connection_class=psycopg.Connection[DictRow],
        kwargs={
            "autocommit": True,
            "row_factory": dict_row,
            "prepare_threshold": 0,
            "application_name": "celegraph web",
            **KEEPALIVE,
        },
        min_size=0,
        max_size=8,
        timeout=10,
        max_idle=timedelta(minutes=5).total_seconds(),
        configure=configure,
        # A round trip per use, and in return a restarted PostgreSQL costs no request an error.
        check=ConnectionPool.check_connection,
        open=True,
        name="celegraph",
    )


@contextmanager
def ledger(config: Config) -> Iterator[Conn]:
    """A pooled autocommit connection for the web side, the sweep and the command line.

    The first use in a process refuses a transaction pooler and a missing or foreign schema.
    """
    try:
        with _pool(config).connection() as conn:
            yield conn
    except psycopg.Error as error:
        raise as_ours(error) from error


@contextmanager
def borrowed(connection: object, schema: str) -> Iterator[Conn]:
    """A host's open connection (psycopg 3, SQLAlchemy, or Django's), with our search_path for a moment.

    Commits nothing: what is written joins the host's transaction and falls with it.
    """
    conn = _driver_connection(connection)
    with conn.cursor(row_factory=dict_row) as cur:
        before = cur.execute("SELECT current_setting('search_path') AS path").fetchone()
        assert before is not None
        cur.execute(set_search_path(schema))
    try:
        yield conn
    except BaseException:
        if conn.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
            raise  # the host rolls back, and that takes the search_path with it
        _restore_path(conn, before["path"])
        raise
    _restore_path(conn, before["path"])


def _restore_path(conn: Conn, path: str) -> None:
    conn.execute("SELECT set_config('search_path', %s, false)", (path,))


def _driver_connection(given: object) -> Conn:
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
