"""A database or role whose settings are not what our statements were written for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from celegraph import ApprovalPolicy, ask_approval
from celegraph.config import load_config, parse_duration
from celegraph.ledger.borrow import borrowed
from celegraph.ledger.connect import AnyConn, connect
from celegraph.testing.database import Ledger
from celegraph.testing.driver import Driver
from tests.support.shapes import State, chain


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("DateStyle", "SQL, DMY"),
        ("client_encoding", "LATIN1"),
        ("client_encoding", "SQL_ASCII"),
        ("default_transaction_isolation", "serializable"),
        ("search_path", "pg_catalog"),
    ],
)
def test_a_run_goes_its_way_whatever_the_database_sets_by_default(
    database_url: str, setting: str, value: str
) -> None:
    _set(database_url, setting, value)

    def node(state: State) -> Any:
        decision = ask_approval(prompt="Zahlen? \N{MONEY BAG}", policy=ApprovalPolicy(deadline="2h"))
        return {"seen": [decision.status]}

    run = Driver(Ledger(database_url, "celegraph"))(chain(node), {}, ["approve"])

    assert run.output["seen"] == ["approved"]
    assert run.approvals[0].prompt == "Zahlen? \N{MONEY BAG}"


@pytest.mark.parametrize("lent", [False, True])
def test_a_day_has_24_hours_in_whatever_zone_the_database_counts(database_url: str, lent: bool) -> None:
    """F112: in Berlin the 25th of October 2026 has 25 hours; a deadline of 24 hours does not care."""
    _set(database_url, "TimeZone", "Europe/Berlin")
    query = b"SELECT %(noon)s::timestamptz + %(span)s::interval AS until"
    noon = datetime.fromisoformat("2026-10-24T12:00+02:00")
    config = load_config({"database_url": database_url})

    with connect(config) as conn, psycopg.connect(database_url) as host, borrowed(host, "public") as loan:
        target: AnyConn = loan if lent else conn
        row = target.execute(query, {"noon": noon, "span": timedelta(hours=24)}).fetchone()

    assert row is not None
    assert row["until"].astimezone(UTC).isoformat() == "2026-10-25T10:00:00+00:00"


@pytest.mark.parametrize("span", ["0s", "1ms", "25h", "36525d"])
def test_a_span_reaches_the_database_exactly(database_url: str, span: str) -> None:
    given = parse_duration(span)

    with connect(load_config({"database_url": database_url})) as conn:
        for sign in (1, -1):
            row = conn.execute(b"SELECT %(span)s::interval AS span", {"span": sign * given}).fetchone()
            assert row == {"span": sign * given}


def test_our_own_connections_read_committed_and_commit_durably(database_url: str) -> None:
    _set(database_url, "default_transaction_isolation", "repeatable read")
    _set(database_url, "synchronous_commit", "off")

    with connect(load_config({"database_url": database_url})) as conn:
        seen = [
            conn.execute(f"SHOW {name}".encode()).fetchone()
            for name in ("transaction_isolation", "synchronous_commit")
        ]

    assert [list(row.values()) for row in seen if row] == [["read committed"], ["on"]]


def _set(database_url: str, setting: str, value: str) -> None:
    database = conninfo_to_dict(database_url)["dbname"]
    values = sql.SQL(", ").join(sql.Literal(part.strip()) for part in value.split(","))
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(
            sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                sql.Identifier(str(database)), sql.Identifier(setting), values
            )
        )
