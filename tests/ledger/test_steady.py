"""A cancellation that meets a statement: the statement is seen to its end first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from celegraph.agent.home import task_factory
from celegraph.config import Config
from celegraph.ledger.pen import Pen

# A statement that lasts until somebody else lets go of the lock, and leaves a fact behind.
_LOCK = b"SELECT pg_advisory_lock(7)"
_HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND granted"
_WAITING = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted)"


class Held:
    """A pen whose `_LOCK` waits until `let_go`."""

    def __init__(self, pen: Pen, other: psycopg.AsyncConnection[Any]):
        self.pen = pen
        self._other = other

    async def waits(self) -> None:
        """Until the pen's statement is at the server and waits there."""
        while not await self._one(_WAITING):
            await asyncio.sleep(0.01)

    async def let_go(self) -> None:
        """Now the statement can end."""
        await self._other.execute("SELECT pg_advisory_unlock(7)")

    async def done(self) -> bool:
        """The pen's statement has taken the lock."""
        return bool(await self._one(_HELD))

    async def _one(self, query: str) -> Any:
        row = await (await self._other.execute(query)).fetchone()
        assert row is not None
        return row[0]


def on_the_loop(config: Config, scenario: Callable[[Held], Awaitable[None]], *, steady: bool = True) -> None:
    """Run `scenario` as a worker's slot would, or (not `steady`) on a loop of plain tasks."""

    async def run() -> None:
        if steady:
            asyncio.get_running_loop().set_task_factory(task_factory)  # type: ignore[arg-type]
        pen = await Pen.open(config)
        async with await psycopg.AsyncConnection.connect(config.database_url, autocommit=True) as other:
            await other.execute("SELECT pg_advisory_lock(7)")
            # In a task of its own: the main one was made before the factory was set.
            await asyncio.create_task(_run(scenario, Held(pen, other)))
        await pen.close()

    asyncio.run(run())


async def _run(scenario: Callable[[Held], Awaitable[None]], held: Held) -> None:
    await scenario(held)


def test_a_cancelled_statement_ends_before_its_task_does(config: Config) -> None:
    async def scenario(held: Held) -> None:
        went_on: list[str] = []

        async def work() -> None:
            await held.pen.fetch(_LOCK)
            went_on.append("after the statement")

        task = asyncio.create_task(work())
        await held.waits()
        assert task.cancel()
        await held.waits()  # a round trip later it still does
        assert not task.done()
        await held.let_go()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await held.done()
        assert went_on == []

    on_the_loop(config, scenario)


def test_a_time_limit_around_a_statement_is_told_when_the_statement_has_ended(config: Config) -> None:
    async def scenario(held: Held) -> None:
        expired = asyncio.Event()

        async def work() -> bool:
            try:
                async with asyncio.timeout(None) as limit:
                    task = asyncio.current_task()
                    assert task is not None
                    asyncio.get_running_loop().call_later(0.05, expired.set)
                    limit.reschedule(asyncio.get_running_loop().time() + 0.01)
                    await held.pen.fetch(_LOCK)
            except TimeoutError:
                return True
            return False

        task = asyncio.create_task(work())
        await held.waits()
        await expired.wait()
        await held.let_go()
        assert await task
        assert task.cancelling() == 0
        assert await held.done()

    on_the_loop(config, scenario)


def test_of_two_cancellations_inside_a_statement_none_is_lost(config: Config) -> None:
    async def scenario(held: Held) -> None:
        counted: list[int] = []

        async def work() -> None:
            task = asyncio.current_task()
            assert task is not None
            try:
                await held.pen.fetch(_LOCK)
            except asyncio.CancelledError:
                counted.append(task.cancelling())
                raise

        task = asyncio.create_task(work())
        await held.waits()
        task.cancel()
        task.cancel()
        await held.let_go()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert counted == [2]

    on_the_loop(config, scenario)


def test_a_statement_of_a_task_that_was_cancelled_before_is_seen_to_its_end(config: Config) -> None:
    async def scenario(held: Held) -> None:
        async def work() -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await held.pen.fetch(_LOCK)

        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(work())
        await held.waits()
        await held.let_go()
        await held.pen.fetch(b"SELECT 1")
        assert await held.done()

    on_the_loop(config, scenario)


def test_a_plain_task_is_cancelled_at_once_and_its_statement_ends_by_itself(config: Config) -> None:
    async def scenario(held: Held) -> None:
        task = asyncio.create_task(held.pen.fetch(_LOCK))
        await held.waits()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await held.let_go()
        await held.pen.fetch(b"SELECT 1")
        assert await held.done()

    on_the_loop(config, scenario, steady=False)


def test_an_error_of_the_database_goes_on_as_before(config: Config) -> None:
    async def scenario(held: Held) -> None:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await held.pen.fetch(b"SELECT 1/0")
        assert await held.pen.fetch(b"SELECT 1 AS one") == [{"one": 1}]
        await held.let_go()

    on_the_loop(config, scenario)
