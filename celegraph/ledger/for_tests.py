"""What only tests may do to a ledger: let time pass at once, and remove a schema they made."""

from __future__ import annotations

from datetime import timedelta

import psycopg
from psycopg import sql

from celegraph.ledger.connect import Conn
from celegraph.ledger.queries import load

Q = load("for_tests")

# Only schemas of this name are ever dropped, whatever a fixture was given.
PREFIX = "celegraph_test_"


def pass_time(conn: Conn, run_id: str, by: timedelta) -> None:
    """For this run `by` has passed: every instant it waits for, or is measured from, moves back."""
    conn.execute(Q.pass_time, {"run_id": run_id, "by": by})


def drop_schema(database_url: str, schema: str) -> None:
    """Remove a schema that a test session made, with everything in it."""
    if not schema.startswith(PREFIX):
        raise ValueError(f"schema {schema!r} was not made by a test session")
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
