"""Connections to the ledger: plain ones, and a small pool for the web side.

Everything that must not be forgotten about a connection is said here once: the schema's search_path,
keepalives, and that a pool never crosses a fork.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol

import psycopg
from psycopg import sql
from psycopg.abc import Params, QueryNoTemplate
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from celegraph.config import Config
from celegraph.ledger.db_errors import as_ours
from celegraph.ledger.migrate import check_schema
from celegraph.ledger.pooler import refuse_transaction_pooler
from celegraph.ledger.spans import exact_spans

Conn = psycopg.Connection[DictRow]


class AnyConn(Protocol):
    """A session of our own or a borrowed one: what a function takes that may join a host's transaction."""

    def execute(self, query: QueryNoTemplate, params: Params | None = None) -> psycopg.Cursor[DictRow]:
        """As `psycopg.Connection.execute`."""


# Seconds.  A dead host must be noticed within a lease, not after the kernel's two hours.
KEEPALIVE: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "connect_timeout": 10,
    # Whatever the database's own default: LATIN1 has no word for most of what a model writes.
    "client_encoding": "utf8",
}


def set_search_path(schema: str) -> sql.Composed:
    """The statement that makes unqualified names ours; a schema is an identifier, never a parameter."""
    return sql.SQL("SET search_path TO {}, public").format(sql.Identifier(schema))


def set_session(schema: str) -> sql.Composed:
    """The statement that makes a connection of our own ours: its path, and what a role or a database may
    have set otherwise.

    The statements look again at rows they had to wait for, which only READ COMMITTED does; a decision that
    was acknowledged must outlive a crash of the server; psycopg reads no dates but ISO's.
    """
    return sql.SQL(
        "SELECT set_config('search_path', {}, false),"
        " set_config('default_transaction_isolation', 'read committed', false),"
        " set_config('DateStyle', 'ISO', false),"
        " set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'"
        " ELSE current_setting('synchronous_commit') END, false)"
    ).format(sql.Literal(f"{sql.Identifier(schema).as_string()}, public"))


def pen_name(schema: str) -> str:
    """The application_name of this schema's pens: which sessions the sweep may end.

    A digest: PostgreSQL cuts long names and rewrites letters that are not ASCII.
    """
    return f"celegraph pen {hashlib.sha256(schema.encode()).hexdigest()[:8]}"


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
    exact_spans(conn.adapters)
    conn.execute(set_session(config.schema_name))
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


# Seconds that a request waits for a free connection, until it asks whether the server is there at all, and
# then at most.
_SOON = 1.0
_PATIENCE = 10.0


def _open_pool(config: Config) -> ConnectionPool[Conn]:
    def configure(conn: Conn) -> None:
        exact_spans(conn.adapters)
        conn.execute(set_session(config.schema_name))

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
        # The pauses between its tries double until it gives up, and nobody else may try meanwhile: with the
        # five minutes of the default, requests would go on failing for as long again as an outage has lasted.
        reconnect_timeout=_PATIENCE,
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
        pool = _pool(config)
        conn = _taken(pool, config)
        try:
            with conn:
                yield conn
        finally:
            pool.putconn(conn)
    except psycopg.Error as error:
        raise as_ours(error) from error


def _taken(pool: ConnectionPool[Conn], config: Config) -> Conn:
    try:
        return pool.getconn(timeout=_SOON)
    except PoolTimeout:
        # All of them are busy, or the server is away; connecting says which, and why.
        connect(config).close()
        return pool.getconn(timeout=_PATIENCE)


def close_pools() -> None:
    """Let go of this process's connections; the next use opens new ones."""
    with _pools_lock:
        for key in [k for k in _pools if k[0] == os.getpid()]:
            _pools.pop(key).close()
