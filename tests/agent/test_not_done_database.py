"""What an error of a PostgreSQL of the effect's own proves, and the shape of AWS's errors."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import psycopg
import psycopg_pool
import pytest
import sqlalchemy
from psycopg import conninfo, sql

from celegraph import EffectCall, effect
from celegraph.agent.not_done import is_not_done
from tests.support.scripted import free_port
from tests.support.waiting import eventually


@effect("book")
def book(call: EffectCall) -> None:
    """Never called: its declaration says nothing about errors."""


def proves(error: BaseException) -> bool:
    return is_not_done(book.declaration, error)


@pytest.fixture
def url(empty_database_url: str) -> str:
    """A database with one account of 100."""
    with psycopg.connect(empty_database_url) as conn:
        conn.execute("CREATE TABLE account (id int PRIMARY KEY, cents int CHECK (cents >= 0))")
        conn.execute("INSERT INTO account VALUES (1, 100), (2, 100)")
    return empty_database_url


def balance(url: str, account: int = 1) -> int:
    with psycopg.connect(url) as conn:
        row = conn.execute("SELECT cents FROM account WHERE id = %s", [account]).fetchone()
        assert row is not None
        return int(row[0])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE account SET cents = cents - 500",  # a constraint
        "INSERT INTO account VALUES (1, 7)",  # a duplicate key
        "UPDATE account SET cents = 'many'",
        "UPDATE accounts SET cents = 0",
        "DO $$ BEGIN RAISE EXCEPTION 'no'; END $$",
    ],
)
def test_a_statement_that_the_server_refuses_has_done_nothing(url: str, statement: str) -> None:
    def transfer() -> None:
        with psycopg.connect(url) as conn:
            conn.execute("UPDATE account SET cents = cents - 1")
            conn.execute(statement.encode())

    with pytest.raises(psycopg.Error) as raised:
        transfer()

    assert proves(raised.value)
    assert balance(url) == 100


def test_a_refusal_wrapped_by_sqlalchemy_has_done_nothing(url: str) -> None:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with pytest.raises(sqlalchemy.exc.IntegrityError) as raised, engine.begin() as conn:
        conn.execute(sqlalchemy.text("UPDATE account SET cents = cents - 500"))
    engine.dispose()

    assert proves(raised.value)


def test_a_serialization_failure_has_done_nothing(url: str) -> None:
    with psycopg.connect(url) as one, psycopg.connect(url) as two:
        for conn in (one, two):
            conn.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
            conn.execute("SELECT sum(cents) FROM account")
        one.execute("UPDATE account SET cents = 1 WHERE id = 1")
        two.execute("UPDATE account SET cents = 2 WHERE id = 2")
        one.commit()
        with pytest.raises(psycopg.errors.SerializationFailure) as raised:
            two.commit()

    assert proves(raised.value)
    assert balance(url, 2) == 100


def test_the_loser_of_a_deadlock_has_done_nothing(url: str) -> None:
    lost: list[BaseException] = []

    def move(conn: psycopg.Connection[Any], account: int) -> None:
        try:
            conn.execute("UPDATE account SET cents = cents - 1 WHERE id = %s", [account])
        except psycopg.Error as error:
            lost.append(error)
            conn.rollback()

    with psycopg.connect(url) as one, psycopg.connect(url) as two:
        for conn in (one, two):
            conn.execute("SET deadlock_timeout = '10ms'")
        move(one, 1)
        move(two, 2)
        other = threading.Thread(target=move, args=(two, 1))
        other.start()
        move(one, 2)
        other.join()
        one.rollback()
        two.rollback()

    assert [type(error) for error in lost] == [psycopg.errors.DeadlockDetected]
    assert proves(lost[0])


def test_a_database_that_cannot_be_reached_has_done_nothing(url: str) -> None:
    nobody = conninfo.make_conninfo(url, host="127.0.0.1", port=free_port())
    for where in (nobody, conninfo.make_conninfo(url, password="wrong", user="nobody")):
        with pytest.raises(psycopg.OperationalError) as raised:
            psycopg.connect(where)
        assert proves(raised.value)

    with (
        psycopg_pool.ConnectionPool(url, min_size=0, max_size=1, open=True) as pool,
        pool.connection(),
        pytest.raises(psycopg_pool.PoolTimeout) as late,
    ):
        pool.getconn(timeout=0.05)
    assert proves(late.value)


def test_a_connection_lost_while_it_committed_is_a_doubt(url: str) -> None:
    with cut_at(url, b"COMMIT") as through:
        with pytest.raises(psycopg.OperationalError) as raised, psycopg.connect(through) as conn:
            conn.execute("UPDATE account SET cents = 50 WHERE id = 1")
        eventually(lambda: balance(url) == 50)

    assert not proves(raised.value)


def test_a_backend_that_was_terminated_is_a_doubt(url: str) -> None:
    with psycopg.connect(url) as conn, psycopg.connect(url, autocommit=True) as admin:
        conn.execute("UPDATE account SET cents = 50")
        admin.execute("SELECT pg_terminate_backend(%s)", [conn.info.backend_pid])
        with pytest.raises(psycopg.OperationalError) as raised:
            conn.execute(sql.SQL("SELECT 1"))

    assert not proves(raised.value)


@contextmanager
def cut_at(url: str, word: bytes) -> Iterator[str]:
    """The same database through a cable that breaks once the server has answered to `word`."""
    parts = urlsplit(url)
    server = (parts.hostname or "127.0.0.1", parts.port or 5432)
    listener = socket.create_server(("127.0.0.1", 0))

    def carry() -> None:
        client, _ = listener.accept()
        with client, socket.create_connection(server) as behind:
            said = threading.Event()

            def forth() -> None:
                with suppress(OSError):  # the other direction has closed both
                    while data := client.recv(65536):
                        if word in data:
                            said.set()
                        behind.sendall(data)

            threading.Thread(target=forth, daemon=True).start()
            while data := behind.recv(65536):
                if said.is_set():
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)

    cable = threading.Thread(target=carry, daemon=True)
    cable.start()
    try:
        port = listener.getsockname()[1]
        yield conninfo.make_conninfo(
            url, host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable"
        )
    finally:
        cable.join(10)
        listener.close()


# -- AWS, by its shape ------------------------------------------------------------------------------


class ClientError(Exception):
    """As botocore's."""

    def __init__(self, status: int, code: str, retries: int = 0):
        self.response = {
            "Error": {"Code": code, "Message": "..."},
            "ResponseMetadata": {"HTTPStatusCode": status, "RetryAttempts": retries},
        }


@pytest.mark.parametrize(
    ("status", "code", "retries", "not_done"),
    [
        (400, "ValidationException", 0, True),
        (400, "ConditionalCheckFailedException", 0, True),
        (400, "ThrottlingException", 0, True),
        (403, "AccessDeniedException", 0, True),
        # After a try of botocore's own whose end nobody saw, the condition may fail because it succeeded.
        (400, "ConditionalCheckFailedException", 2, False),
        (400, "TransactionInProgressException", 0, False),
        (409, "OperationAborted", 0, False),
        (500, "InternalError", 0, False),
        (503, "SlowDown", 0, False),
    ],
)
def test_an_answer_of_aws_is_read_by_its_status_and_code(
    status: int, code: str, retries: int, not_done: bool
) -> None:
    assert proves(ClientError(status, code, retries)) is not_done


def test_a_response_that_is_a_dict_of_another_kind_proves_nothing() -> None:
    error = RuntimeError("?")
    error.response = {"ok": False}  # type: ignore[attr-defined]

    assert not proves(error)
