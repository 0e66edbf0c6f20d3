"""Connections to the ledger.  Everything that must not be forgotten about one is said here once: what the
session is set to, and the keepalives."""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import psycopg
from psycopg import sql
from psycopg.abc import Params, QueryNoTemplate
from psycopg.rows import DictRow, dict_row

from celegraph.config import Config
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


def as_application(name: str) -> dict[str, Any]:
    """How every connection of our own is made, plain, pooled or awaited."""
    return {"autocommit": True, "prepare_threshold": 0, "application_name": name, **KEEPALIVE}


def set_up(conn: Conn, config: Config) -> None:
    """What a fresh connection needs before its first statement."""
    exact_spans(conn.adapters)
    conn.execute(set_session(config.schema_name))


def connect(config: Config, *, application: str = "celegraph") -> Conn:
    """One autocommit connection of its own, search_path set.  The caller closes it."""
    conn = psycopg.connect(config.database_url, row_factory=dict_row, **as_application(application))
    set_up(conn, config)
    return conn
