"""A step's writes and its checkpoint: one commit, and never the checkpoint alone."""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy, interrupt
from psycopg import sql

from celegraph import EffectCall, effect
from celegraph.agent import held
from celegraph.testing.driver import Driver
from tests.support.driving import connection
from tests.support.log import Log
from tests.support.shapes import State, chain
from tests.support.waiting import eventually

# The row version's transaction says what was committed together.
_TOGETHER = """
SELECT w.task_id, w.xmin = c.xmin AS together
  FROM checkpoint_writes w
  JOIN checkpoints c ON c.thread_id = w.thread_id AND c.parent_checkpoint_id = w.checkpoint_id
 WHERE w.thread_id = %s AND w.idx >= 0
"""
_WRITTEN = "SELECT 1 FROM checkpoint_writes WHERE thread_id = %s AND task_path LIKE '%%early%%'"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine is busy with, the writes wait for their checkpoint."""
    monkeypatch.setattr(held, "_HOLD", 30.0)


@pytest.mark.usefixtures("patient")
def test_a_steps_writes_and_its_checkpoint_are_one_commit(drive: Driver) -> None:
    async def later(state: State) -> State:
        return {"seen": ["later"]}

    run = drive(chain(lambda state: {"seen": ["first"]}, later), {})

    assert run.status == "finished"
    with connection(run) as conn:
        rows = conn.execute(_TOGETHER, [run.run_id]).fetchall()
    assert len({row["task_id"] for row in rows}) == 3  # the input's, and each node's
    assert all(row["together"] for row in rows)


@pytest.mark.usefixtures("patient")
def test_a_question_does_not_wait_for_a_checkpoint_that_never_follows(drive: Driver) -> None:
    asked_at = time.monotonic()

    run = drive(chain(lambda state: {"seen": [str(interrupt("well?"))]}), {})

    assert run.status == "waiting"
    assert time.monotonic() - asked_at < 25


def test_a_branch_that_ends_early_is_durable_while_its_sibling_still_works(drive: Driver) -> None:
    durable: list[bool] = []

    def early(state: State) -> State:
        return {"seen": ["early"]}

    def late(state: State, config: RunnableConfig) -> State:
        run_id = config["configurable"]["thread_id"]

        def written() -> bool:
            with psycopg.connect(drive.ledger.database_url) as conn:
                conn.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(drive.ledger.schema)))
                return conn.execute(_WRITTEN, [run_id]).fetchone() is not None

        durable.append(eventually(written))
        return {"seen": ["late"]}

    graph = StateGraph(State)
    graph.add_node("early", early)
    graph.add_node("late", late)
    graph.add_edge(START, "early")
    graph.add_edge(START, "late")

    assert drive(graph, {}).status == "finished"
    assert durable == [True]


@pytest.mark.timeout(60)
def test_checkpoints_of_subgraphs_side_by_side_do_not_wait_for_each_other(drive: Driver, log: Log) -> None:
    @effect("held-side-by-side")
    def mail(call: EffectCall, to: str) -> str:
        return to

    def doubtful(name: str) -> Callable[[State], State]:
        def node(state: State) -> State:
            log(name)
            if log.count(name) == 1:
                mail.enqueue(name)
                raise TimeoutError
            # What the first pass wanted is dropped before the writes: they are announced, and not ready.
            return {"seen": [name]}

        node.__name__ = name
        return node

    patiently = RetryPolicy(initial_interval=0.01, jitter=False, retry_on=TimeoutError)
    beside = StateGraph(State)
    for sub in "abcdef":
        nodes = [doubtful(f"{sub}{number}") for number in range(4)]
        beside.add_node(sub, chain(*nodes, retry=patiently).compile())
        beside.add_edge(START, sub)

    run = drive(beside, {})

    assert run.status == "finished"
    assert len(run.output["seen"]) == 24
