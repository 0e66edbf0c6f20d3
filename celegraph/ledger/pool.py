"""The small pool of connections for the web side, the duties on beat and the command line.

It never crosses a fork, and it is of use again as soon as a database that was away is back.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from celegraph.config import Config
from celegraph.ledger.connect import Conn, as_application, connect, set_up
from celegraph.ledger.db_errors import as_ours
from celegraph.ledger.migrate import check_schema
from celegraph.ledger.pooler import refuse_transaction_pooler

# Seconds that a request waits for a free connection before it asks whether the server is there at all.
SOON = 1.0
# Seconds that it waits at most after that.
PATIENCE = 10.0


class Pool:
    """At most eight connections of this process, opened when they are needed."""

    def __init__(self, config: Config):
        self._config = config
        self._lock = threading.Lock()
        self._lent = 0
        self._pool: ConnectionPool[Conn] = ConnectionPool(
            config.database_url,
            connection_class=psycopg.Connection[DictRow],
            kwargs={"row_factory": dict_row, **as_application("celegraph web")},
            min_size=0,
            max_size=8,
            # The pauses between its tries double until it gives up, and nobody else may try meanwhile: with
            # the five minutes of the default, requests would fail for as long again as an outage has lasted.
            reconnect_timeout=PATIENCE,
            max_idle=timedelta(minutes=5).total_seconds(),
            configure=lambda conn: set_up(conn, config),
            # A round trip per use, and in return a restarted PostgreSQL costs no request an error.
            check=ConnectionPool.check_connection,
            open=True,
            name="celegraph",
        )

    @contextmanager
    def lend(self) -> Iterator[Conn]:
        """A connection for the block.  psycopg's error says why there is none: the server's own, when it
        is away."""
        conn = self._take()
        self._count(+1)
        try:
            with conn:
                yield conn
        finally:
            self._count(-1)
            self._pool.putconn(conn)

    def _take(self) -> Conn:
        try:
            return self._pool.getconn(timeout=SOON)
        except PoolTimeout:
            # While others have theirs it is there, and all are busy: one more would only be one too many.
            if not self._lent:
                connect(self._config).close()
                # It is back: connections to the server that was before make room now, not one by one after
                # psycopg's pauses.
                self._pool.check()
            return self._pool.getconn(timeout=PATIENCE)

    def close(self) -> None:
        """Let go of all connections."""
        self._pool.close()

    def _count(self, change: int) -> None:
        with self._lock:
            self._lent += change


_pools: dict[tuple[int, str, str], Pool] = {}
_pools_lock = threading.Lock()


def _renew_lock() -> None:
    # A thread of the parent may have had it at the moment of the fork; in the child nobody frees it.
    global _pools_lock
    _pools_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def _pool(config: Config) -> Pool:
    # The pid is part of the key: a child must never use its parent's sockets.  The parent's pool object
    # is left alone in the child; psycopg closes nothing there that another process opened.
    key = (os.getpid(), config.database_url, config.schema_name)
    with _pools_lock:
        if key not in _pools:
            refuse_transaction_pooler(config.database_url)
            with connect(config) as probe:
                check_schema(probe)
            _pools[key] = Pool(config)
        return _pools[key]


@contextmanager
def ledger(config: Config) -> Iterator[Conn]:
    """A pooled autocommit connection for the web side, the sweep and the command line.

    The first use in a process refuses a transaction pooler and a missing or foreign schema.
    """
    try:
        with _pool(config).lend() as conn:
            yield conn
    except psycopg.Error as error:
        raise as_ours(error) from error


def close_pools() -> None:
    """Let go of this process's connections; the next use opens new ones."""
    with _pools_lock:
        for key in [k for k in _pools if k[0] == os.getpid()]:
            _pools.pop(key).close()
