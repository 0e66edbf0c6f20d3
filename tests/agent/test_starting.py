"""State table: no checkpoint, crashed mid-way, nothing left."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from celegraph.agent import runner
from celegraph.agent.graphs import load_graph
from celegraph.agent.spec import Agent, RetryPolicy
from celegraph.errors import AgentUnusable
from celegraph.tasks import advance
from celegraph.tasks.control import retry_run
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driver
from tests.support.driving import kinds, taken_over
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain, parallel


def test_a_new_run_starts_with_its_input_and_ends_with_the_graphs_state(drive: Driver) -> None:
    def double(state: State) -> State:
        return {"n": state["n"] * 2}

    run = drive(chain(double), {"n": 21, "order": "o-1"})

    assert run.status == "finished"
    assert run.output == {"n": 42, "order": "o-1", "seen": []}
    assert kinds(run)[0] == "admitted"
    assert kinds(run)[-1] == "finished"


def test_sync_and_async_nodes_run_in_one_graph(drive: Driver) -> None:
    def plain(state: State) -> State:
        return {"seen": ["plain"]}

    async def awaited(state: State) -> State:
        await asyncio.sleep(0)
        return {"seen": ["awaited"]}

    run = drive(chain(plain, awaited), {})

    assert run.output["seen"] == ["plain", "awaited"]


def test_an_entrypoint_whose_body_dies_before_the_first_checkpoint_gets_its_input_again(
    drive: Driver, log: Log
) -> None:
    @entrypoint()
    def double(n: int) -> int:
        log(f"body {n}")
        if log.count("body 21") == 1:
            die()
        return n * 2

    process_dies(lambda: drive(double, 21, run_id="entry-dies"))
    run = taken_over(drive(double, 21, run_id="entry-dies"))

    assert (run.status, run.output) == ("finished", 42)
    assert log.lines == ["body 21", "body 21"]


def test_an_entrypoint_with_tasks_runs_to_its_value(drive: Driver) -> None:
    @task
    def add(a: int, b: int) -> int:
        return a + b

    @entrypoint()
    def total(numbers: list[int]) -> int:
        return sum(add(a, 1).result() for a in numbers)

    assert drive(total, [1, 2, 3]).output == 9


def test_a_run_whose_process_died_goes_on_after_the_last_finished_node(drive: Driver, log: Log) -> None:
    def first(state: State) -> State:
        log("first")
        return {"seen": ["first"]}

    def second(state: State) -> State:
        log("second")
        if log.count("second") == 1:
            die()
        return {"seen": ["second"]}

    process_dies(lambda: drive(chain(first, second), {}, run_id="dies-midway"))
    run = taken_over(drive(chain(first, second), {}, run_id="dies-midway"))

    assert run.output["seen"] == ["first", "second"]
    assert log.lines == ["first", "second", "second"]
    assert kinds(run).count("crashed") == 1


def test_finished_siblings_of_a_node_that_died_do_not_run_again(drive: Driver, log: Log) -> None:
    def build() -> Graph:

        async def quick(state: State) -> State:
            log("quick")
            return {"seen": ["quick"]}

        async def slow(state: State) -> State:
            while not log.count("quick"):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)  # the quick node's writes become durable meanwhile
            log("slow")
            if log.count("slow") == 1:
                die()
            return {"seen": ["slow"]}

        return parallel(quick, slow)

    process_dies(lambda: drive(build(), {}, run_id="sibling-dies"))
    run = taken_over(drive(build(), {}, run_id="sibling-dies"))

    assert sorted(run.output["seen"]) == ["quick", "slow"]
    assert log.count("quick") == 1


def test_death_between_the_last_checkpoint_and_the_settle_runs_nothing_again(
    drive: Driver, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only(state: State) -> State:
        log("only")
        return {"seen": ["only"]}

    async def die_instead(*_: object) -> None:
        die()

    with monkeypatch.context() as patched:
        patched.setattr(advance, "settle", die_instead)
        process_dies(lambda: drive(chain(only), {"order": "o-1"}, run_id="dies-unsettled"))
    run = taken_over(drive(chain(only), {"order": "o-1"}, run_id="dies-unsettled"))

    assert run.status == "finished"
    assert run.output == {"order": "o-1", "seen": ["only"]}
    assert log.lines == ["only"]


def test_a_run_that_kills_its_process_three_times_in_one_step_is_quarantined_with_the_step_named(
    drive: Driver, log: Log
) -> None:
    def fine(state: State) -> None:
        log("fine")

    def poison(state: State) -> None:
        log("poison")
        die()

    def attempt() -> None:
        taken_over(drive(chain(fine, poison), {}, run_id="poison"))

    for _ in range(3):
        process_dies(attempt)
    run = taken_over(drive(chain(fine, poison), {}, run_id="poison"))

    assert run.status == "quarantined"
    assert "poison" in (run.run.reason or "")
    assert log.lines == ["fine", "poison", "poison", "poison"]


@pytest.mark.parametrize("option", ["interrupt_before", "interrupt_after"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_graph_with_breakpoints_is_refused_because_they_would_pass_by_themselves(
    option: str, nested: bool
) -> None:
    def node(state: State) -> None: ...

    options: dict[str, Any] = {option: ["node"]}
    compiled = chain(node).compile(**options)
    graph = StateGraph(State).add_sequence([("sub", compiled)]).add_edge(START, "sub") if nested else compiled

    with pytest.raises(AgentUnusable, match="wait for nobody here; ask with ask_approval"):
        load_graph("support", Agent(graph=graph))


def test_a_run_does_not_go_on_with_the_checkpoints_of_a_deleted_run_of_its_name(
    drive: Driver, log: Log
) -> None:
    def ask(state: State) -> State:
        assert interrupt("go on?")
        return {}

    def act(state: State) -> State:
        log(f"act {state['n']}")
        return {}

    retries = Agent(graph=chain(ask, act), retry=RetryPolicy(retry_on=(Exception,)))
    drive(retries, {"n": 1}, ["approve"], run_id="deleted")
    with psycopg.connect(drive.ledger.database_url, autocommit=True) as conn:
        conn.execute(f'SET search_path = "{drive.ledger.schema}"')
        conn.execute("DELETE FROM runs WHERE run_id = 'deleted'")

        again = drive(retries, {"n": 2}, run_id="deleted")

        assert (again.status, log.lines) == ("failed", ["act 1"])
        assert "deleted without them" in again.run.error["message"]
        with using(again.installation):
            retry_run("deleted", by="test")
        again.resume()
        assert (again.status, log.lines) == ("failed", ["act 1"])
        for table in ("checkpoints", "checkpoint_writes", "checkpoint_blobs"):
            conn.execute(f"DELETE FROM {table} WHERE thread_id = 'deleted'")
    with using(again.installation):
        retry_run("deleted", by="test")
    again.resume(["approve"])
    assert (again.status, log.lines) == ("finished", ["act 1", "act 2"])


def test_a_run_that_died_before_it_looked_does_not_go_on_with_a_deleted_runs_checkpoints_either(
    drive: Driver, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def act(state: State) -> State:
        log(f"act {state['n']}")
        return {}

    drive(chain(act), {"n": 1}, run_id="died")
    with psycopg.connect(drive.ledger.database_url, autocommit=True) as conn:
        conn.execute(f'SET search_path = "{drive.ledger.schema}"')
        conn.execute("DELETE FROM runs WHERE run_id = 'died'")
    with monkeypatch.context() as patch:
        patch.setattr(runner, "look", lambda *args: die())
        process_dies(lambda: drive(chain(act), {"n": 2}, run_id="died"))

    again = taken_over(drive(chain(act), {"n": 2}, run_id="died"))

    assert (again.status, log.lines) == ("failed", ["act 1"])
    assert "deleted without them" in again.run.error["message"]


def test_a_retried_run_whose_events_were_pruned_goes_on_where_it_stood(drive: Driver, log: Log) -> None:
    def first(state: State) -> State:
        log("first")
        return {}

    def second(state: State) -> State:
        log("second")
        if log.count("second") == 1:
            raise ValueError("no such order")
        return {}

    run = drive(chain(first, second), {})
    assert run.status == "failed"
    with psycopg.connect(drive.ledger.database_url, autocommit=True) as conn:
        conn.execute(f'SET search_path = "{drive.ledger.schema}"')
        conn.execute("DELETE FROM run_events WHERE run_id = %s", [run.run_id])
    with using(run.installation):
        retry_run(run.run_id, by="test")

    run.resume()

    assert (run.status, log.lines) == ("finished", ["first", "second", "second"])
