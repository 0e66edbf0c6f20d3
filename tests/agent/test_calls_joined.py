"""A call in flight in this very attempt is joined, however it is reached again: made once, and no doubt."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy, TimeoutPolicy

from celegraph import EffectCall, effect
from celegraph.agent import claims
from celegraph.agent import identify as identify_module
from celegraph.errors import EffectNotDone
from celegraph.testing.driver import Driver
from tests.support.log import Log
from tests.support.shapes import State, chain
from tests.support.waiting import eventually


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many callers have been told which call theirs is."""
    known: list[object] = []
    identify = identify_module.identify

    async def counted(*args: Any) -> Any:
        request = await identify(*args)
        known.append(request)
        return request

    monkeypatch.setattr(claims, "identify", counted)
    return lambda: len(known)


def given_up_and_run_again(node: Callable[[State], Any], *, within: float) -> Any:
    """A node that LangGraph cancels after a while, and runs again in place."""
    graph: Any = StateGraph(State)
    retry = RetryPolicy(max_attempts=20, initial_interval=0.01, backoff_factor=1, jitter=False)
    graph.add_node("node", node, timeout=TimeoutPolicy(run_timeout=within), retry_policy=retry)
    graph.add_edge(START, "node")
    return graph


def test_a_plain_call_in_the_thread_of_a_cancelled_pass_is_joined_by_the_next_pass(
    drive: Driver, log: Log, reached: Callable[[], int]
) -> None:
    @effect("pay")
    def pay(call: EffectCall, order: str) -> str:
        log("act")
        eventually(lambda: reached() >= 2)
        return "receipt"

    async def node(state: State) -> State:
        log("node")
        return {"seen": [await asyncio.to_thread(pay, "o-1")]}

    run = drive(given_up_and_run_again(node, within=0.3), {})

    assert run.output["seen"] == ["receipt"]
    assert log.count("node") >= 2
    assert log.count("act") == 1
    assert run.approvals == []
    assert [(e.status, e.attempts) for e in run.effects] == [("sent", 1)]


def test_two_threads_that_want_one_named_call_make_it_once_and_get_one_result(
    drive: Driver, log: Log, reached: Callable[[], int]
) -> None:
    @effect("pay")
    def pay(call: EffectCall, order: str) -> str:
        log("act")
        eventually(lambda: reached() == 2)
        return f"receipt {call.attempt}"

    def node(state: State) -> State:
        contexts = [contextvars.copy_context() for _ in range(2)]
        with ThreadPoolExecutor(2) as pool:
            return {"seen": list(pool.map(lambda c: c.run(pay.slot("deposit"), "o-1"), contexts))}

    run = drive(chain(node), {})

    assert run.output["seen"] == ["receipt 1", "receipt 1"]
    assert log.count("act") == 1


def test_whoever_joins_a_call_that_was_refused_gets_the_refusal_and_the_next_may_call_again(
    drive: Driver, log: Log, reached: Callable[[], int]
) -> None:
    @effect("pay")
    def pay(call: EffectCall, order: str) -> str:
        log("call")
        if call.attempt == 1:
            eventually(lambda: reached() == 2)
            raise EffectNotDone("the provider is closed")
        return "receipt"

    def refused(context: contextvars.Context) -> str:
        try:
            return context.run(pay.slot("deposit"), "o-1")
        except EffectNotDone as error:
            return str(error)

    def node(state: State) -> State:
        contexts = [contextvars.copy_context() for _ in range(2)]
        with ThreadPoolExecutor(2) as pool:
            got = list(pool.map(refused, contexts))
        return {"seen": [*got, pay.slot("deposit")("o-1")]}

    run = drive(chain(node), {})

    assert run.output["seen"] == ["the provider is closed", "the provider is closed", "receipt"]
    assert log.count("call") == 2


def test_a_call_that_raises_stop_iteration_leaves_nobody_waiting(
    drive: Driver, log: Log, reached: Callable[[], int]
) -> None:
    @effect("pay", classify=lambda error: "not_done")
    def pay(call: EffectCall, order: str) -> str:
        eventually(lambda: reached() == 2)
        raise StopIteration

    ended = threading.Semaphore(0)

    def wanting(context: contextvars.Context) -> None:
        try:
            context.run(pay.slot("deposit"), "o-1")
        except (StopIteration, RuntimeError):
            ended.release()

    def node(state: State) -> State:
        threads = [threading.Thread(target=wanting, args=(contextvars.copy_context(),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        return {"seen": [ended.acquire(timeout=10) for _ in threads]}

    assert drive(chain(node), {}).output["seen"] == [True, True]


def test_a_node_that_stops_waiting_for_a_named_call_and_calls_again_gets_the_first_calls_result(
    drive: Driver, log: Log
) -> None:
    called, given_up = asyncio.Event(), asyncio.Event()

    @effect("pay")
    async def pay(call: EffectCall, order: str) -> str:
        log("act")
        called.set()
        await given_up.wait()
        return "receipt"

    async def node(state: State) -> State:
        first = asyncio.create_task(pay.slot("deposit")("o-1"))
        await called.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        given_up.set()
        return {"seen": [await pay.slot("deposit")("o-1")]}

    run = drive(chain(node), {})

    assert run.output["seen"] == ["receipt"]
    assert log.lines == ["act"]
