"""A database or role whose settings are not what our statements were written for."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from celegraph import ApprovalPolicy, ask_approval
from celegraph.config import load_config
from celegraph.ledger.connect import connect
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
