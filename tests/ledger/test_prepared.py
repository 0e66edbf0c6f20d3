"""What the pen says without a cursor means what it would mean with one."""

from __future__ import annotations

import asyncio
import signal
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import FrameType
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors as pg
from psycopg.types.json import Jsonb

from celegraph.config import Config
from celegraph.ledger import answers
from celegraph.ledger.connect import Conn
from celegraph.ledger.db_errors import is_lost
from celegraph.ledger.pen import Pen
from celegraph.ledger.prepared import PreparedStatements
from celegraph.ledger.queries import numbered
from tests.support.databases import waiting_for
from tests.support.pens import with_pen
from tests.support.waiting import eventually

LONG = 10.0  # seconds
SLEEP = b"SELECT pg_sleep(%(seconds)s)"


@pytest.fixture(params=[0.0, LONG], ids=["on the loop", "at once"])
def moment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """For how many seconds an answer is waited for right where it was asked for."""
    moment: float = request.param
    monkeypatch.setattr(answers, "_MOMENT", moment)
    return moment


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "text"),
        ("an ü and a %", "text"),
        (True, "boolean"),
        (7, "int4"),
        (2**40, "bigint"),
        (2**70, "numeric"),
        (0.1, "double precision"),
        (b"\x00\xff", "bytea"),
        (Decimal("10.50"), "numeric"),
        (datetime(2026, 3, 29, 1, 30, tzinfo=UTC), "timestamptz"),
        (timedelta(days=1, microseconds=3), "interval"),
        (UUID(int=7), "uuid"),
        (["a", "b"], "text[]"),
        (Jsonb({"a": [1, None]}), "jsonb"),
    ],
)
@pytest.mark.usefixtures("moment")
def test_values_and_columns_come_and_go_as_with_a_cursor(config: Config, value: object, kind: str) -> None:
    query = f"SELECT %(v)s::{kind} AS v, 1 AS one, '%%' AS sign".encode()

    async def both(pen: Pen) -> tuple[Any, Any]:
        ours = [await pen.fetch(query, {"v": value, "unused": 1}) for _ in range(2)]
        cursor = await pen.conn.execute(query, {"v": value})
        assert ours[0] == ours[1]
        return ours[0], await cursor.fetchall()

    ours, theirs = with_pen(config, both)

    assert ours == theirs
    assert list(ours[0]) == ["v", "one", "sign"]


@pytest.mark.usefixtures("moment")
def test_one_query_takes_small_and_large_numbers_and_none_in_turns(config: Config) -> None:
    async def work(pen: Pen) -> list[object]:
        query = b"SELECT %(v)s::numeric AS v"
        return [(await pen.fetch(query, {"v": v}))[0]["v"] for v in (1, 70_000, 2**40, None, 2, 2**70)]

    assert with_pen(config, work) == [1, 70_000, 2**40, None, 2, 2**70]


@pytest.mark.usefixtures("moment")
def test_an_error_is_that_of_a_cursor_and_the_next_statement_is_well(config: Config) -> None:
    async def work(pen: Pen) -> tuple[psycopg.Error, psycopg.Error, list[Any]]:
        twice = b"INSERT INTO ticks (name, at) VALUES ('one', now()), ('one', now())"
        with pytest.raises(pg.UniqueViolation) as refused:
            await pen.fetch(twice)
        with pytest.raises(pg.UndefinedTable) as unprepared:
            await pen.fetch(b"SELECT * FROM nowhere")
        return refused.value, unprepared.value, await pen.fetch(b"SELECT 1 AS one")

    refused, unprepared, rows = with_pen(config, work)

    assert refused.diag.constraint_name == "ticks_pkey"
    assert unprepared.diag.sqlstate == "42P01"
    assert rows == [{"one": 1}]


@pytest.mark.usefixtures("moment")
def test_a_value_larger_than_every_buffer_goes_through_and_comes_back(config: Config) -> None:
    large = "x" * 20_000_000

    async def work(pen: Pen) -> list[Any]:
        return [(await pen.fetch(b"SELECT %(v)s::text AS v", {"v": v}))[0]["v"] for v in ("", large, "")]

    assert with_pen(config, work) == ["", large, ""]


@pytest.mark.usefixtures("moment")
def test_a_statement_without_rows_has_none_and_leaves_the_next_one_alone(config: Config) -> None:
    async def work(pen: Pen) -> list[Any]:
        return [
            await pen.fetch(b"UPDATE ticks SET name = name WHERE false"),
            await pen.fetch(b"SELECT name FROM ticks WHERE false"),
            await pen.fetch(b"SELECT 1 AS one"),
        ]

    assert with_pen(config, work) == [[], [], [{"one": 1}]]


@pytest.mark.usefixtures("moment")
def test_a_session_that_the_server_has_ended_is_lost(config: Config, conn: Conn) -> None:
    async def work(pen: Pen) -> tuple[bool, bool]:
        await pen.fetch(b"SELECT 1")
        (row,) = await pen.fetch(b"SELECT pg_backend_pid() AS pid")
        conn.execute("SELECT pg_terminate_backend(%s, 10000)", (row["pid"],))
        with pytest.raises(psycopg.OperationalError) as first:
            await pen.fetch(b"SELECT 1")
        with pytest.raises(psycopg.OperationalError) as second:
            await pen.fetch(b"SELECT 1")
        return is_lost(first.value) and is_lost(second.value), pen.broken

    assert with_pen(config, work) == (True, True)


def test_a_cancelled_fetch_is_seen_to_its_end_and_its_answer_is_not_the_next_ones(
    config: Config, conn: Conn
) -> None:
    slow = b"INSERT INTO ticks (name, at) VALUES ('slow', now()) RETURNING name AS said"

    async def work(pen: Pen) -> list[Any]:
        with psycopg.connect(config.database_url) as holder:
            holder.execute("LOCK TABLE celegraph.ticks IN SHARE MODE")
            fetch = asyncio.ensure_future(pen.fetch(slow))
            while not waiting_for(holder, conn):
                await asyncio.sleep(0)
            fetch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await fetch
        return await pen.fetch(b"SELECT 'next' AS said")

    assert with_pen(config, work) == [{"said": "next"}]
    assert conn.execute("SELECT FROM ticks WHERE name = 'slow'").rowcount == 1


@pytest.mark.usefixtures("moment")
def test_a_statement_that_the_server_has_forgotten_or_outgrown_is_prepared_anew(
    config: Config, conn: Conn
) -> None:
    conn.execute("CREATE TABLE grown AS SELECT 1 AS one")

    async def work(pen: Pen) -> list[Any]:
        query = b"SELECT * FROM grown"
        first = await pen.fetch(query)
        await pen.conn.execute("DEALLOCATE ALL")
        second = await pen.fetch(query)
        conn.execute("ALTER TABLE grown ADD COLUMN two int DEFAULT 2")
        return [first, second, await pen.fetch(query)]

    assert with_pen(config, work) == [[{"one": 1}], [{"one": 1}], [{"one": 1, "two": 2}]]


def test_a_session_that_somebody_else_had_before_is_as_good_as_a_new_one(config: Config) -> None:
    """As from a pooler that keeps sessions and does not reset them."""

    async def work(pen: Pen) -> list[Any]:
        others = PreparedStatements(pen.conn, alone=lambda: True)
        return [
            await pen.fetch(b"SELECT 1 AS one"),
            await others.fetch(b"SELECT 2 AS two", {}),
            await pen.fetch(b"SELECT 1 AS one"),
        ]

    assert with_pen(config, work) == [[{"one": 1}], [{"two": 2}], [{"one": 1}]]


def test_a_large_answer_is_let_go_with_the_statement_that_brought_it(config: Config) -> None:
    async def work(pen: Pen) -> object:
        await pen.fetch(b"SELECT repeat('x', 1000) AS v")
        return pen.statements._transformer.pgresult

    assert with_pen(config, work) is None


@pytest.mark.parametrize(("effects", "by_the_loop"), [(0, False), (1, False), (2, True)])
def test_a_quick_answer_is_waited_for_on_the_loop_only_when_effects_are_made_side_by_side(
    config: Config, monkeypatch: pytest.MonkeyPatch, effects: int, by_the_loop: bool
) -> None:
    monkeypatch.setattr(answers, "_MOMENT", LONG)
    waited: list[object] = []

    async def work(pen: Pen) -> None:
        await pen.fetch(b"SELECT 1 AS one")  # by the loop: nobody knows yet how fast the server is

        async def wait(work: object) -> object:
            waited.append(work)
            return await psycopg.AsyncConnection.wait(pen.conn, work)  # type: ignore[arg-type]

        monkeypatch.setattr(pen.conn, "wait", wait)
        at_work = asyncio.Barrier(effects + 1)

        async def effect() -> None:
            with pen.shelter():
                await at_work.wait()
                await at_work.wait()

        async with asyncio.TaskGroup() as group:
            for _ in range(effects):
                group.create_task(effect())
            await at_work.wait()
            assert await pen.fetch(b"SELECT 1 AS one") == [{"one": 1}]
            await at_work.wait()

    with_pen(config, work)

    assert bool(waited) == by_the_loop


def test_the_loop_goes_on_while_a_slow_answer_is_on_its_way(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(pen: Pen) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(answers, "_MOMENT", LONG)  # the server counts as a fast one
            (row,) = await pen.fetch(b"SELECT pg_backend_pid() AS pid")
        slow = asyncio.ensure_future(pen.fetch(SLEEP, {"seconds": 60.0}))
        async with await psycopg.AsyncConnection.connect(config.database_url) as other:
            # Whoever can say this has the loop; and only this ends the statement.
            while not slow.done():
                await other.execute("SELECT pg_cancel_backend(%s)", (row["pid"],))
        with pytest.raises(pg.QueryCanceled):
            await slow

    with_pen(config, work)


def test_the_loop_goes_on_while_a_long_answer_comes_in_many_parts(config: Config) -> None:
    async def work(pen: Pen) -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        with pen.shelter():
            await pen.fetch(b"SELECT 1")
            counting = asyncio.ensure_future(count())
            await pen.fetch(b"SELECT repeat('x', 20000) AS v FROM generate_series(1, 2000)")
            counting.cancel()
        return turns

    assert with_pen(config, work) > 10


def test_a_signal_that_raises_while_an_answer_is_waited_for_ends_the_connection(
    config: Config, conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would refuse every statement from then on, and nobody would know why."""
    monkeypatch.setattr(answers, "_MOMENT", 10 * LONG)

    class Stopped(Exception):
        pass

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    def stop_when_it_is_asked(pid: int) -> None:
        asked = "SELECT FROM pg_stat_activity WHERE pid = %s AND state = 'active' AND query LIKE '%%sleep%%'"
        eventually(lambda: conn.execute(asked, (pid,)).rowcount == 1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    async def work(pen: Pen) -> bool:
        with pen.shelter():
            (row,) = await pen.fetch(b"SELECT pg_backend_pid() AS pid")
            await pen.fetch(SLEEP, {"seconds": 0.0})
            thread = threading.Thread(target=stop_when_it_is_asked, args=(row["pid"],))
            thread.start()
            with pytest.raises(Stopped):
                await pen.fetch(SLEEP, {"seconds": 60.0})
            thread.join()
        return pen.broken

    before = signal.signal(signal.SIGALRM, stop)
    try:
        assert with_pen(config, work)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_parameters_are_numbered_in_the_order_of_their_first_places() -> None:
    query = b"SELECT %(b)s, %(a)s, %(b)s, 5 %% 2, 'LIKE %%x'"

    assert numbered(query) == (b"SELECT $1, $2, $1, 5 % 2, 'LIKE %x'", ("b", "a"))
