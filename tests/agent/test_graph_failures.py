"""State table: stored errors, retries, routers that fail, values nobody can store."""

from __future__ import annotations

from typing import Any

import django.db.utils
import psycopg
import pytest
import sqlalchemy.exc
from langgraph.graph import END, START, StateGraph

import celegraph
from celegraph.testing.driver import Driver
from tests.support.driving import event, kinds
from tests.support.log import Log
from tests.support.shapes import State, chain


def test_a_transient_error_sleeps_in_the_database_and_the_node_runs_again(drive: Driver, log: Log) -> None:
    def flaky(state: State) -> State:
        log("flaky")
        if log.count("flaky") < 3:
            raise TimeoutError("no answer")
        return {"seen": ["done"]}

    run = drive(chain(flaky), {})

    assert run.output["seen"] == ["done"]
    assert kinds(run).count("sleeps") == 2
    assert log.count("flaky") == 3


@pytest.mark.parametrize(
    "lost",
    [
        django.db.utils.OperationalError("server closed the connection unexpectedly"),
        django.db.utils.InterfaceError("the connection is closed"),
        sqlalchemy.exc.OperationalError("SELECT 1", {}, psycopg.OperationalError("terminated")),
        sqlalchemy.exc.InterfaceError("SELECT 1", {}, psycopg.InterfaceError("closed")),
        psycopg.errors.QueryCanceled("canceling statement due to statement timeout"),
    ],
    ids=lambda error: type(error).__module__ + "." + type(error).__name__,
)
def test_a_lost_connection_or_a_cut_statement_of_the_nodes_own_is_transient(
    drive: Driver, log: Log, lost: Exception
) -> None:
    def query(state: State) -> State:
        log("query")
        if log.count("query") == 1:
            raise lost
        return {"seen": ["rows"]}

    run = drive(chain(query), {})

    assert run.output["seen"] == ["rows"]
    assert log.count("query") == 2


def test_retries_end_after_the_agents_number_of_attempts(drive: Driver, log: Log) -> None:
    def broken(state: State) -> None:
        log("broken")
        raise TimeoutError("no answer")

    agent = celegraph.Agent(graph=chain(broken), retry=celegraph.RetryPolicy(max_attempts=3))
    run = drive(agent, {})

    assert run.status == "failed"
    assert log.count("broken") == 3
    assert run.run.error["type"] == "builtins.TimeoutError"


def test_an_error_nobody_knows_fails_the_run_at_once(drive: Driver, log: Log) -> None:
    def broken(state: State) -> None:
        log("broken")
        raise LookupError("no such order")

    run = drive(chain(broken), {})

    assert run.status == "failed"
    assert log.count("broken") == 1
    assert run.run.error["message"] == "no such order"
    assert "where" in run.run.error


def test_an_error_the_host_named_is_retried(drive: Driver, log: Log) -> None:
    def broken(state: State) -> None:
        log("broken")
        if log.count("broken") == 1:
            raise LookupError("not yet")

    retry = celegraph.RetryPolicy(retry_on=("builtins.LookupError",))
    run = drive(celegraph.Agent(graph=chain(broken), retry=retry), {})

    assert run.status == "finished"
    assert log.count("broken") == 2


def test_a_router_that_failed_is_repaired_its_node_runs_again_and_its_effect_once(
    drive: Driver, log: Log
) -> None:
    @celegraph.effect("pay")
    def pay(call: celegraph.EffectCall, order: str) -> str:
        log(f"act {order}")
        return "receipt"

    def node(state: State) -> State:
        log("node")
        return {"seen": [pay("o-1")]}

    def route(state: State) -> str:
        log("route")
        if log.count("route") == 1:
            raise ConnectionResetError("the rules' server went away")
        return "after"

    def after(state: State) -> State:
        return {"seen": ["after"]}

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_node("after", after)
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", route, {"after": "after", "end": END})

    run = drive(graph, {})

    assert run.output["seen"] == ["receipt", "after"]
    assert log.lines == ["node", "act o-1", "route", "node", "route"]


@pytest.mark.parametrize("poison", ["nul \x00 byte", "lone \ud800 surrogate"])
def test_a_value_postgresql_refuses_fails_the_run_and_is_not_retried(
    drive: Driver, log: Log, poison: str
) -> None:
    def node(state: State) -> State:
        log("node")
        return {"order": poison}

    run = drive(chain(node), {})

    assert run.status == "failed"
    assert log.count("node") == 1


def test_the_recursion_limit_fails_the_run_instead_of_granting_another_budget(
    drive: Driver, log: Log
) -> None:
    def loop(state: State) -> None:
        log("loop")

    graph = chain(loop)
    graph.add_edge("loop", "loop")

    run = drive(graph.compile().with_config({"recursion_limit": 5}), {})

    assert run.status == "failed"
    assert "Recursion" in run.run.error["type"]
    assert log.count("loop") <= 5


def test_sys_exit_in_a_node_is_the_nodes_failure(drive: Driver) -> None:
    def leave(state: State) -> None:
        raise SystemExit(3)

    run = drive(chain(leave), {})

    assert run.status == "failed"
    assert "sys.exit(3)" in run.run.error["message"]


def test_sys_exit_in_an_async_node_is_the_nodes_failure(drive: Driver) -> None:
    async def leave(state: State) -> None:
        raise SystemExit(3)

    run = drive(chain(leave), {})

    assert run.status == "failed"
    assert "sys.exit(3)" in run.run.error["message"]


def test_memory_error_is_the_nodes_failure(drive: Driver) -> None:
    def greedy(state: State) -> None:
        raise MemoryError("too much")

    assert drive(chain(greedy), {}).status == "failed"


def test_a_lost_connection_gives_the_run_back_and_counts_no_crash(drive: Driver, log: Log) -> None:
    from celegraph.agent.attempt import current_attempt

    async def cut(state: State) -> State:
        log("cut")
        if log.count("cut") == 1:
            await current_attempt("test").pen.close()
        return {"seen": ["cut"]}

    run = drive(chain(cut), {})

    assert run.output["seen"] == ["cut"]
    assert log.count("cut") == 2
    assert event(run, "abandoned")["crashes"] == 0


def test_a_failed_run_that_is_retried_goes_on_where_it_stood(drive: Driver, log: Log) -> None:
    from celegraph.tasks.control import retry_run
    from celegraph.tasks.installation import using

    def first(state: State) -> State:
        log("first")
        return {"seen": ["first"]}

    def second(state: State) -> Any:
        log("second")
        if log.count("second") == 1:
            raise LookupError("a bug, since repaired")
        return {"seen": ["second"]}

    run = drive(chain(first, second), {})
    assert run.status == "failed"
    with using(run.installation):
        retry_run(run.run_id, by="anna")
    run.resume()

    assert run.output["seen"] == ["first", "second"]
    assert log.lines == ["first", "second", "second"]


def test_an_error_whose_message_postgresql_cannot_hold_fails_the_run_all_the_same(drive: Driver) -> None:
    def broken(state: State) -> None:
        raise ValueError("half a character: \ud800, and a NUL: \0")

    run = drive(chain(broken), {})

    assert run.status == "failed"
    assert run.run.error["message"] == "half a character: \ufffd, and a NUL: \ufffd"
