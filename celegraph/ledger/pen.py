"""The pen: the one connection an attempt writes with.  Lock, checkpoints and ledger die with it.

It is opened after the fork, never pooled and never reconnected inside an attempt.  Every statement
goes through one asyncio lock, which LangGraph's saver shares.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from celegraph.config import Config
from celegraph.ledger.connect import as_application, pen_name, set_session
from celegraph.ledger.prepared import PreparedStatements
from celegraph.ledger.spans import exact_spans

# By SET after connecting, never by options=: PgBouncer refuses unknown start-up parameters.
# client_connection_check_interval: a backend inside a query notices in half a second that its client
# died, and lets the run's lock go.  The keepalives are the server's side of a dead worker host.
_SETTINGS = b"""
SELECT set_config('lock_timeout', %(lock_timeout)s, false),
       set_config('idle_session_timeout', '0', false),
       set_config('client_connection_check_interval', '500', false),
       set_config('tcp_keepalives_idle', '10', false),
       set_config('tcp_keepalives_interval', '5', false),
       set_config('tcp_keepalives_count', '3', false)
"""


class Pen:
    """One autocommit AsyncConnection and the lock all its users share."""

    def __init__(self, conn: AsyncConnection[DictRow]):
        self.conn = conn
        self.lock = asyncio.Lock()
        self._sheltered: set[asyncio.Task[Any] | None] = set()
        # Effects side by side have work to do while one of them waits.
        self.statements = PreparedStatements(conn, alone=lambda: len(self._sheltered) < 2)

    @classmethod
    async def open(cls, config: Config) -> Pen:
        """Connect and set the session up.  psycopg.OperationalError when the server is not there."""
        conn = await AsyncConnection.connect(
            config.database_url, row_factory=dict_row, **as_application(pen_name(config.schema_name))
        )
        exact_spans(conn.adapters)
        await conn.execute(set_session(config.schema_name))
        millis = int(config.lease.total_seconds() * 1000 / 6)
        await conn.execute(_SETTINGS, {"lock_timeout": f"{millis}ms"})
        return cls(conn)

    @property
    def broken(self) -> bool:
        """The connection is known to be of no use any more."""
        return self.conn.closed

    async def fetch(self, query: bytes, params: Mapping[str, Any] | None = None) -> list[DictRow]:
        """All rows of one statement, its own transaction.

        Shielded: a cancelled statement may have committed, so it is always seen to its end.
        """
        if asyncio.current_task() in self._sheltered:
            return await self._fetch(query, params)
        return await asyncio.shield(asyncio.ensure_future(self._fetch(query, params)))

    @contextmanager
    def shelter(self) -> Iterator[None]:
        """For a caller who knows that nobody cancels the current task before its attempt ends: within it
        statements need no task of their own, which costs a tenth of an effect's time."""
        task = asyncio.current_task()
        self._sheltered.add(task)
        try:
            yield
        finally:
            self._sheltered.discard(task)

    async def fetch_one(self, query: bytes, params: Mapping[str, Any] | None = None) -> DictRow | None:
        """The first row of one statement, or None."""
        rows = await self.fetch(query, params)
        return rows[0] if rows else None

    async def _fetch(self, query: bytes, params: Mapping[str, Any] | None) -> list[DictRow]:
        async with self.lock:
            return await self.statements.fetch(query, params or {})

    async def close(self) -> None:
        """Close for good; the server frees the session's locks.  An error here changes nothing."""
        try:
            await self.conn.close()
        except psycopg.Error:
            # Already gone: that is what was wanted.
            return

    def hang_up(self) -> None:
        """Close the socket in the slot's own thread, without the loop; the server notices at once."""
        self.conn.pgconn.finish()
