"""Every way an attempt stops, played out: the sentence is that of the rows the stop really leaves."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import interrupt

import celegraph
from celegraph import EffectCall, ask_approval, effect
from celegraph.config import load_config
from celegraph.errors import EffectNotDone
from celegraph.ledger.pool import ledger
from celegraph.ledger.sweep import sweep_once
from celegraph.tasks.control import cancel_run, pause_run
from celegraph.tasks.dispatch import dispatch
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driven, Driver
from tests.support.driving import connection, sweep
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain
from tests.support.waiting import eventually


def said(run: Driven) -> str:
    sweep(run)
    with using(run.installation):
        return celegraph.explain_run(run.run_id).sentence


def raising(error: Exception) -> Graph:
    def node(state: State) -> Any:
        raise error

    return chain(node)


def doubtful(**options: Any) -> Graph:
    @effect("pay", **options)
    def pay(call: EffectCall) -> str:
        raise TimeoutError("no answer")

    def paying(state: State) -> Any:
        return {"seen": [pay()]}

    return chain(paying)


def asking() -> Graph:
    def ask(state: State) -> Any:
        return {"seen": [interrupt("go?")]}

    return chain(ask)


def test_a_retry(lonely_drive: Driver) -> None:
    run = lonely_drive(raising(ConnectionResetError("gone")), {}, sleeps=False)

    assert "sleeps until" in said(run)
    assert "ConnectionResetError in the graph, retry 1 of 4" in said(run)


def test_a_failure_with_the_fields_path(lonely_drive: Driver) -> None:
    run = lonely_drive(chain(lambda state: {"order": "nul \0"}), {})

    assert "failed 0 s ago" in said(run)
    assert "state.order: contains a NUL character" in said(run)
    assert f"`celegraph retry {run.run_id}` goes on" in said(run)


def test_a_doubt_before_its_horizon_and_after_it(lonely_drive: Driver, log: Log) -> None:
    @effect("pay", in_doubt="retry")
    def pay(call: EffectCall) -> str:
        die()
        return "receipt"

    def paying(state: State) -> Any:
        return {"seen": [pay()]}

    process_dies(lambda: lonely_drive(chain(paying), {}, run_id="doubt"))
    run = lonely_drive(doubtful(in_doubt="retry"), {}, run_id="doubt", sleeps=False)
    eventually(lambda: run.status != "running" or run.resume().status != "running")
    run.resume()

    assert "effect in doubt: the last call may be under way" in said(run)
    assert "in doubt: effect 'pay' (call 1" in said(run)
    assert "a call may be under way for" in said(run)

    run.pass_time("2m")

    assert "has been due for" in said(run)


def test_a_doubt_that_a_person_must_settle(lonely_drive: Driver) -> None:
    run = lonely_drive(doubtful(), {})

    assert "waits for an answer: whether 'pay' happened" in said(run)


def test_a_drift(lonely_drive: Driver, log: Log) -> None:
    @effect("pay")
    def pay(call: EffectCall, cents: int) -> str:
        return "receipt"

    def paying(state: State) -> Any:
        log("node")
        pay(log.count("node"))
        if log.count("node") == 1:
            raise ConnectionResetError("after the effect")

    run = lonely_drive(chain(paying), {})

    assert "whether 'pay' shall be called again with other arguments" in said(run)


def test_an_approval_and_its_passed_deadline(lonely_drive: Driver) -> None:
    def ask(state: State) -> Any:
        ask_approval(prompt="Pay?", policy=celegraph.ApprovalPolicy(deadline="1h"))

    run = lonely_drive(chain(ask), {})
    assert "a question of the graph" in said(run)
    assert "deadline in 1 h" in said(run)

    run.pass_time("2h")
    assert "the escalation closes what is past its deadline" in said(run)


def test_other_code(lonely_drive: Driver) -> None:
    lonely_drive(asking(), {}, run_id="changed")
    run = lonely_drive(raising(LookupError()), {}, run_id="changed").resume(["approve"])

    assert "has waited for other code for 0 s: graph changed: ask is pending" in said(run)
    assert "its decisions are kept; start a worker whose code knows it again, or cancel it" in said(run)


def test_a_pause_and_a_cancellation(lonely_drive: Driver) -> None:
    run = lonely_drive(asking(), {})
    with using(run.installation):
        pause_run(run.run_id, reason="audit")
        assert "was paused 0 s ago (audit)" in said(run)
        cancel_run(run.run_id, reason="customer left")

    assert "was cancelled 0 s ago (customer left)" in said(run)


def test_a_poisonous_run(lonely_drive: Driver) -> None:
    graph = chain(lambda state: die())
    config = load_config({"database_url": lonely_drive.ledger.database_url})

    def recovered() -> bool:
        with ledger(config) as conn:
            return bool(sweep_once(conn, config).recovered)

    for _ in range(3):
        process_dies(lambda: lonely_drive(graph, {}, run_id="poison"))
        eventually(recovered)
        with ledger(config) as conn:
            conn.execute("UPDATE runs SET wake_at = NULL, ring_at = now() WHERE status = 'ready'")
    run = lonely_drive(asking(), {}, run_id="other")
    with using(run.installation):
        sentence = celegraph.explain_run("poison").sentence

    assert "stopped its worker 3 times without progress after step 0" in sentence
    assert "`celegraph release poison` lets it go on" in sentence


def test_a_dead_letter(lonely_drive: Driver) -> None:
    @effect("explain-dead")
    def mail(call: EffectCall) -> None:
        raise EffectNotDone("mailbox full")

    run = lonely_drive(chain(lambda state: mail.enqueue() and None), {})
    assert "the dispatch makes the enqueued effect 'explain-dead'" in said(run)
    for _ in range(10):
        dispatch(run.installation)
        run.pass_time("1h")

    assert "the enqueued effect 'explain-dead'" in said(run)
    assert "failed 8 times and is tried no more" in said(run)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("SELECT 1", "no doorbell has reached the broker yet: the next sweep rings"),
        ("DELETE FROM ticks", "none has ever run here: start beat or a worker"),
        (
            "UPDATE ticks SET at = now() - interval '1 hour'",
            "the last one was 1 h ago: start beat or a worker",
        ),
    ],
    ids=["broker down", "no beat and no worker", "an old tick"],
)
def test_a_run_that_was_admitted_and_never_rung(lonely_drive: Driver, change: str, words: str) -> None:
    run = lonely_drive(asking(), {})
    with connection(run) as conn:
        conn.execute(
            b"UPDATE runs SET status = 'ready', waits_for = NULL, ring_at = now(), rung_at = NULL,"
            b" started_at = NULL"
        )
        conn.execute("INSERT INTO ticks (name, at) VALUES ('sweep', now()) ON CONFLICT DO NOTHING")
        conn.execute(change.encode())
    with using(run.installation):
        assert words in celegraph.explain_run(run.run_id).sentence
