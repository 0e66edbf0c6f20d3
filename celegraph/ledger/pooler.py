"""Notices a transaction pooler between us and PostgreSQL, where session locks protect nothing.

PgBouncer in session mode passes.  `info.backend_pid` cannot tell (the pooler invents it), a lock test
on one idle connection cannot either (it gets the same backend back).
"""

from __future__ import annotations

from typing import LiteralString

import psycopg

from celegraph.errors import PoolerRefused
from celegraph.ledger.connect import KEEPALIVE

_PID: LiteralString = "SELECT pg_backend_pid()"


def _pid(conn: psycopg.Connection) -> int:
    row = conn.execute(_PID).fetchone()
    assert row is not None
    return int(row[0])


def refuse_transaction_pooler(database_url: str) -> None:
    """Raise `PoolerRefused` unless each connection keeps a backend of its own.

    While B sits inside a transaction, A must neither share B's backend nor have changed its own.
    """
    with (
        psycopg.connect(database_url, autocommit=True, prepare_threshold=None, **KEEPALIVE) as a,
        psycopg.connect(database_url, autocommit=True, prepare_threshold=None, **KEEPALIVE) as b,
    ):
        before = _pid(a)
        with b.transaction():
            held = _pid(b)
            after = _pid(a)
    if held in (before, after) or before != after:
        raise PoolerRefused(
            "the database URL leads through a pooler in transaction mode: a run's lock would be taken on"
            " one backend and its writes made on another. Point celegraph's 'database_url' at PostgreSQL"
            " itself, or at a pooler in session mode (PgBouncer: pool_mode=session for this database)"
        )
