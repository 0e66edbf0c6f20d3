"""What LangGraph sends through threads to encode a state is done on the slot's loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from celegraph.agent.slot_loop import SlotLoop, threads_spared
from celegraph.errors import NodeExited
from celegraph.tasks.slot import current_slot
from celegraph.testing.driver import Driver
from tests.support.shapes import State, chain

T = TypeVar("T")


def on_slot_loop(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=SlotLoop) as runner:
        return runner.run(work)


def test_where_threads_are_spared_a_job_is_done_on_the_loop_and_elsewhere_in_a_thread() -> None:
    async def where() -> list[int]:
        with threads_spared():
            here = await asyncio.to_thread(threading.get_ident)
        return [here, await asyncio.to_thread(threading.get_ident)]

    here, there = on_slot_loop(where())

    assert here == threading.get_ident()
    assert there != threading.get_ident()


def test_the_error_of_a_job_on_the_loop_reaches_who_awaits_it() -> None:
    async def fail() -> None:
        with threads_spared():
            await asyncio.to_thread(int, "x")

    with pytest.raises(ValueError, match="invalid literal"):
        on_slot_loop(fail())


def test_a_job_that_wants_to_end_the_process_does_not_end_the_loop() -> None:
    async def leave() -> None:
        with threads_spared():
            await asyncio.to_thread(sys.exit, 3)

    with pytest.raises(NodeExited):
        on_slot_loop(leave())


def test_an_executor_of_ones_own_is_never_passed_over() -> None:
    async def where() -> str:
        with ThreadPoolExecutor(1, thread_name_prefix="own") as own, threads_spared():
            return await asyncio.get_running_loop().run_in_executor(
                own, lambda: threading.current_thread().name
            )

    assert on_slot_loop(where()).startswith("own")


def test_a_run_of_awaited_nodes_needs_no_thread(
    lonely_drive: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def one(state: State) -> State:
        return {"seen": ["one"]}

    async def two(state: State) -> State:
        return {"seen": ["two"]}

    first = lonely_drive(chain(one, two), {})
    submitted = _submitted(monkeypatch, current_slot(first.installation.config).executor)

    assert lonely_drive(chain(one, two), {}).output["seen"] == ["one", "two"]
    assert submitted == []


def _submitted(monkeypatch: pytest.MonkeyPatch, executor: Any) -> list[str]:
    submit: Callable[..., Any] = executor.submit
    jobs: list[str] = []

    def counting(fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        jobs.append(repr(fn))
        return submit(fn, *args, **kwargs)

    monkeypatch.setattr(executor, "submit", counting)
    return jobs
