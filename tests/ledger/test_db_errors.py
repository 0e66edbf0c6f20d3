"""Database errors in a log: enough to know what is wrong, nothing of the customer's."""

from __future__ import annotations

import psycopg
import pytest

from celegraph.ledger.connect import Conn
from celegraph.ledger.db_errors import in_log, is_bad_value, is_lost

SECRET = "4111 1111 1111 1111"


def test_a_refused_row_is_not_quoted_in_a_log(conn: Conn) -> None:
    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        conn.execute(
            "INSERT INTO runs (run_id, lock_key, agent, input, max_crashes, status)"
            " VALUES ('run-1', 1, 'a', %(input)s, 3, 'ready')",
            {"input": f'"{SECRET}"'},
        )

    assert SECRET in str(refused.value)
    assert in_log(refused.value) == "CheckViolation"


def test_a_lost_connection_says_what_is_the_matter() -> None:
    with pytest.raises(psycopg.OperationalError) as lost:
        psycopg.connect("postgresql://127.0.0.1:1/nobody", connect_timeout=2)

    assert in_log(lost.value).startswith("OperationalError: connection")
    assert "refused" in in_log(lost.value)


def test_a_limit_of_postgresqls_own_is_a_refused_value_and_no_lost_connection(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("CREATE TEMP TABLE narrow (text text PRIMARY KEY)")
        with pytest.raises(psycopg.OperationalError) as refused:
            conn.execute(
                "INSERT INTO narrow SELECT string_agg(md5(n::text), '') FROM generate_series(1, 500) n"
            )

        assert is_bad_value(refused.value)
        assert not is_lost(refused.value)
        assert conn.execute("SELECT 1").fetchone() == (1,)
