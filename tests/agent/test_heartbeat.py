"""`heartbeat()` in nodes and effects: what it promises, what it costs, what it refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

import celegraph
from celegraph import Agent, EffectCall, effect, explain_run, heartbeat
from celegraph.agent.attempt import LOST, attempt_here
from celegraph.errors import ConfigError, EffectOutsideRun, InvalidValue
from celegraph.tasks.dispatch import dispatch
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driver
from tests.support.driving import kinds
from tests.support.log import Log
from tests.support.shapes import State, chain
from tests.support.waiting import eventually


def _transactions(url: str) -> int:
    """Transactions that have changed something, so far."""
    with psycopg.connect(url, autocommit=True) as conn:
        row = conn.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
        assert row is not None
        return int(row[0])


def _progress(url: str, run_id: str) -> Any:
    with psycopg.connect(url, autocommit=True) as conn:
        row = conn.execute("SELECT progress FROM celegraph.run_leases WHERE run_id = %s", [run_id]).fetchone()
        assert row is not None
        return row[0]


def test_what_a_node_says_last_is_shown_and_thousands_of_calls_cost_no_commits(
    lonely_drive: Driver, database_url: str
) -> None:
    def work(state: State) -> State:
        before = _transactions(database_url)
        for page in range(5000):
            heartbeat({"page": page, "of": 5000})
        spent = _transactions(database_url) - before
        eventually(lambda: _progress(database_url, "r-1") == {"page": 4999, "of": 5000})
        said = explain_run("r-1")
        return {"seen": [spent, said.sentence, said.facts["progress"]]}

    run = lonely_drive(chain(work), {}, run_id="r-1", settings={"beat_every": "300ms"})

    spent, sentence, facts = run.output["seen"]
    assert spent < 50
    assert 'its last word: {"of": 5000, "page": 4999}' in sentence
    assert facts == {"page": 4999, "of": 5000}
    assert run.run.progress is None  # of a run that has ended nothing is under way


def test_what_was_said_is_kept_as_it_was_when_it_was_said(lonely_drive: Driver, database_url: str) -> None:
    async def work(state: State) -> State:
        said = {"page": 1}
        heartbeat(said)
        heartbeat()  # says nothing new
        said["page"] = 2
        await asyncio.to_thread(eventually, lambda: _progress(database_url, "r-1"))
        return {"seen": [_progress(database_url, "r-1")]}

    run = lonely_drive(chain(work), {}, run_id="r-1", settings={"beat_every": "300ms"})

    assert run.output["seen"] == [{"page": 1}]


def test_a_call_of_an_effect_has_a_heartbeat_too(lonely_drive: Driver, database_url: str) -> None:
    @effect("long-call")
    def upload(call: EffectCall) -> Any:
        call.heartbeat("half of it")
        return eventually(lambda: _progress(database_url, call.run_id))

    run = lonely_drive(chain(lambda state: {"seen": [upload()]}), {}, settings={"beat_every": "300ms"})

    assert run.output["seen"] == ["half of it"]


def test_a_dispatchers_call_may_call_it_and_nothing_happens(lonely_drive: Driver, log: Log) -> None:
    @effect("long-intent")
    def upload(call: EffectCall) -> None:
        call.heartbeat("half of it")
        log("uploaded")

    run = lonely_drive(chain(lambda state: upload.enqueue() and None), {})

    assert dispatch(run.installation).sent == 1
    assert log.lines == ["uploaded"]


@pytest.mark.parametrize(
    ("progress", "field"),
    [
        ({"of": object()}, "progress.of"),
        ({"of": float("nan")}, "progress.of"),
        ("nul \0", "progress"),
        ("x" * 5000, "progress"),
    ],
    ids=["object", "nan", "nul", "long"],
)
def test_what_cannot_be_shown_is_refused_with_its_place(drive: Driver, progress: Any, field: str) -> None:
    def work(state: State) -> State:
        with pytest.raises(InvalidValue) as refused:
            heartbeat(progress)
        return {"seen": [refused.value.path]}

    assert drive(chain(work), {}).output["seen"] == [field]


def test_outside_a_run_it_is_an_error_that_says_where_it_belongs() -> None:
    with pytest.raises(EffectOutsideRun, match="heartbeat was reached outside a celegraph run"):
        heartbeat()


def test_a_node_that_has_lost_its_run_learns_it_from_its_next_heartbeat(drive: Driver, log: Log) -> None:
    def work(state: State) -> State:
        attempt = attempt_here()
        assert attempt is not None
        log(f"epoch {attempt.epoch}")
        if log.count("epoch 1") == len(log.lines):
            attempt.request_drain(LOST)
            heartbeat()
            log("not refused")
        return {"seen": ["done"]}

    run = drive(chain(work), {}).resume()

    assert run.output["seen"] == ["done"]
    assert len(log.lines) == 2
    assert kinds(run).count("abandoned") == 1


@pytest.mark.parametrize("given", ["500ms", "soon", -1])
def test_a_heartbeat_timeout_that_cannot_work_is_refused_at_install(given: Any) -> None:
    with pytest.raises(ConfigError, match="agent 'refund': heartbeat_timeout"):
        Agent.of("refund", Agent(graph="shop:graph", heartbeat_timeout=given))


def test_it_is_public() -> None:
    assert celegraph.heartbeat is heartbeat


def test_an_explained_run_tells_an_overdue_heartbeat(lonely_drive: Driver) -> None:
    def work(state: State) -> State:
        return {"seen": [explain_run("r-1").facts["holder"]["heartbeat_due_s"]]}

    agent = Agent(graph=chain(lambda state: eventually(lambda: _due(state)), work), heartbeat_timeout="1h")
    run = lonely_drive(agent, {}, run_id="r-1")

    (due,) = run.output["seen"]
    assert 3500 < due < 3700
    with using(run.installation):
        assert explain_run("r-1").facts["holder"] is None


def _due(state: State) -> State:
    """Waits for the first beat, which is made at once."""
    holder = explain_run("r-1").facts["holder"]
    return {"n": 1} if holder and holder["heartbeat_due_s"] else {}
