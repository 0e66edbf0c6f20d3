"""`start_run.admit` and `decide` inside a transaction that is the host's: psycopg and SQLAlchemy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import class_row, dict_row
from psycopg.types.json import set_json_dumps, set_json_loads
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.orm import Session

import celegraph
from celegraph.errors import ConfigError, RunConflict, RunNotFound, SchemaMissing
from tests.support.app import make_app

INPUT = {"order": "A-1", "cents": [1, 2.5, None]}
PATH = "SELECT current_setting('search_path') AS path"


@pytest.fixture(autouse=True)
def app(database_url: str) -> None:
    """No broker: nothing here may ring."""
    make_app("redis://127.0.0.1:1/0", settings={"database_url": database_url})


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url) as connection:
        yield connection


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    made = create_engine(database_url.replace("postgresql://", "postgresql+psycopg://"))
    yield made
    made.dispose()


def _exists(run_id: str) -> bool:
    try:
        return celegraph.get_run(run_id).status == "ready"
    except RunNotFound:
        return False


def test_a_run_exists_when_the_host_commits(conn: psycopg.Connection[Any]) -> None:
    result = celegraph.start_run.admit("steps", INPUT, "r1", connection=conn)

    assert result.id == "r1"
    assert not _exists("r1")
    conn.commit()
    assert _exists("r1")
    assert celegraph.get_run("r1").input == INPUT


def test_a_run_falls_with_the_hosts_rollback(conn: psycopg.Connection[Any]) -> None:
    celegraph.start_run.admit("steps", INPUT, "r1", connection=conn)
    conn.rollback()

    assert not _exists("r1")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_the_hosts_search_path_is_its_own_again(conn: psycopg.Connection[Any], end: str) -> None:
    conn.execute("SET search_path TO pg_catalog, public")
    conn.commit()

    celegraph.start_run.admit("steps", INPUT, "r1", connection=conn)

    assert conn.execute(PATH).fetchone() == ("pg_catalog, public",)
    getattr(conn, end)()
    assert conn.execute(PATH).fetchone() == ("pg_catalog, public",)


def test_a_conflict_raises_and_leaves_the_transaction_usable(conn: psycopg.Connection[Any]) -> None:
    celegraph.start_run.admit("steps", INPUT, "r1", connection=conn)

    with pytest.raises(RunConflict, match="another input"):
        celegraph.start_run.admit("steps", {"order": "B-2"}, "r1", connection=conn)

    assert conn.execute(PATH).fetchone() == ('"$user", public',)
    assert celegraph.start_run.admit("steps", INPUT, "r1", connection=conn).id == "r1"
    conn.commit()
    assert _exists("r1")


def test_a_connection_that_commits_by_itself_admits_at_once(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        celegraph.start_run.admit("steps", INPUT, "r1", connection=conn)

        assert _exists("r1")
        assert conn.execute(PATH).fetchone() == ('"$user", public',)


def _plain(conn: psycopg.Connection[Any]) -> None: ...


def _dicts(conn: psycopg.Connection[Any]) -> None:
    conn.row_factory = dict_row


def _client_side(conn: psycopg.Connection[Any]) -> None:
    conn.cursor_factory = psycopg.ClientCursor


def _strange_rows(conn: psycopg.Connection[Any]) -> None:
    conn.row_factory = class_row(dict)


def _strange_json(conn: psycopg.Connection[Any]) -> None:
    set_json_loads(lambda data: data, conn)
    set_json_dumps(lambda value: json.dumps("somebody else's"), conn)


def _text_times(conn: psycopg.Connection[Any]) -> None:
    conn.adapters.register_loader("timestamptz", psycopg.types.string.TextLoader)


@pytest.mark.parametrize("habit", [_plain, _dicts, _client_side, _strange_rows, _strange_json, _text_times])
def test_how_the_host_reads_rows_does_not_matter(
    database_url: str, habit: Callable[[psycopg.Connection[Any]], None]
) -> None:
    with psycopg.connect(database_url) as conn:
        habit(conn)
        celegraph.start_run.admit("steps", INPUT, "r1", connection=conn)
        with pytest.raises(RunConflict):
            celegraph.start_run.admit("asked", INPUT, "r1", connection=conn)

    assert celegraph.get_run("r1").input == INPUT


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_run_joins_an_sqlalchemy_session(engine: Engine, end: str) -> None:
    with Session(engine) as session:
        session.execute(text("CREATE TABLE orders (number text)"))
        celegraph.start_run.admit("steps", INPUT, "r1", connection=session)
        session.execute(text("INSERT INTO orders VALUES ('A-1')"))
        assert not _exists("r1")
        getattr(session, end)()

    assert _exists("r1") is (end == "commit")
    with engine.connect() as conn:
        there = conn.execute(text("SELECT to_regclass('orders') IS NOT NULL")).scalar_one()
        assert there is (end == "commit")
        assert conn.execute(text(PATH)).scalar_one() == '"$user", public'


def test_a_run_joins_an_sqlalchemy_connection_and_its_savepoints(engine: Engine) -> None:
    with engine.begin() as conn:
        celegraph.start_run.admit("steps", INPUT, "kept", connection=conn)
        inner = conn.begin_nested()
        celegraph.start_run.admit("steps", INPUT, "undone", connection=conn)
        inner.rollback()

    assert _exists("kept")
    assert not _exists("undone")


def test_a_failed_transaction_is_the_hosts_to_roll_back(conn: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        conn.execute("SELECT 1 / 0")

    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        celegraph.start_run.admit("steps", INPUT, "r1", connection=conn)

    conn.rollback()
    celegraph.start_run.admit("steps", INPUT, "r1", connection=conn)
    conn.commit()
    assert _exists("r1")


def test_a_database_without_the_ledger_says_what_to_do(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as conn, pytest.raises(SchemaMissing, match="celegraph migrate"):
        celegraph.start_run.admit("steps", INPUT, connection=conn)


@pytest.mark.parametrize("wrong", [None, "postgresql://", object()])
def test_what_is_no_connection_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigError, match="connection"):
        celegraph.start_run.admit("steps", INPUT, connection=wrong)
