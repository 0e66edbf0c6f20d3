"""Every status and every stop of a run has its sentence.

The rows are written here as the ledger's own statements leave them; the table's CHECKs watch that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import psycopg
import pytest

import celegraph
from celegraph.config import load_config
from celegraph.errors import RunNotFound
from celegraph.ledger import runs
from celegraph.ledger.connect import Conn, connect
from celegraph.ledger.keys import lock_key
from celegraph.ledger.runs import Admission
from celegraph.ledger.states import STATUSES
from celegraph.ledger.sweep import record_tick
from celegraph.tasks import sentence
from celegraph.tasks.installation import ledger_only, using

RUN = "run-1"


@pytest.fixture
def conn(database_url: str) -> Iterator[Conn]:
    """The ledger that `explain_run` reads, where a sweep has just run and one run was admitted."""
    inst = ledger_only()
    inst.override(database_url=database_url)
    with using(inst), connect(inst.config) as conn:
        record_tick(conn, "sweep", {})
        runs.admit(conn, Admission(RUN, "refund", {"iban": "SECRET"}, max_crashes=3))
        yield conn


def explained() -> str:
    return celegraph.explain_run(RUN).sentence


def says(expected: str, sentence: str | None = None) -> bool:
    """It is in the sentence, its seconds being those of a machine that may be busy."""

    def about(seconds: re.Match[str]) -> str:
        exact = int(seconds[1])
        return f"(?:{'|'.join(str(n) for n in range(max(0, exact - 10), exact + 11))})\\ s"

    pattern = re.sub(r"(\d+)\\ s\b", about, re.escape(expected))
    return re.search(pattern, explained() if sentence is None else sentence) is not None


def change(conn: Conn, columns: str) -> None:
    """Set columns of the run; `ring_at` follows the status, as its CHECK wants."""
    statement = f"UPDATE runs SET {columns} WHERE run_id = '{RUN}'"
    conn.execute(statement.encode())


def at_rest(conn: Conn, status: str, more: str = "reason = NULL") -> None:
    """Out of `ready` by hand."""
    ended = "now()" if status in ("finished", "failed", "cancelled") else "NULL"
    change(conn, f"status = '{status}', ring_at = NULL, started_at = now(), finished_at = {ended}, {more}")


def asleep(conn: Conn, span: str, reason: str) -> None:
    """Ready, started, with a `wake_at`."""
    due = f"now() + interval '{span}'"
    change(conn, f"started_at = now(), wake_at = {due}, ring_at = {due}, reason = '{reason}'")


def waiting(conn: Conn) -> None:
    at_rest(conn, "waiting", "waits_for = 'decision', reason = 'waits for a decision'")


def leased(conn: Conn, holder: Conn, *, beat: str = "1 second", loop: str = "1 second") -> None:
    """Running for five minutes, held by `holder`'s session."""
    at_rest(conn, "running")
    expires = f"now() - interval '{beat}' + interval '60 seconds'"
    conn.execute(
        f"UPDATE run_leases SET epoch = 3, worker_id = 'host:7', backend_pid = {holder.info.backend_pid},"
        f" beat_at = now() - interval '{beat}', loop_seen_at = now() - interval '{loop}',"
        f" lease_for = '60 seconds', expires_at = {expires}".encode()
    )
    event(conn, "leased", {"worker": "host:7"}, epoch=3, ago="5 minutes")
    holder.execute("SELECT pg_advisory_lock(%s)", (lock_key(RUN),))


def event(
    conn: Conn, kind: str, data: dict[str, Any], *, epoch: int | None = None, ago: str = "0 seconds"
) -> None:
    conn.execute(
        "INSERT INTO run_events (run_id, epoch, kind, data, at)"
        " VALUES (%s, %s, %s, %s, now() - %s::interval)",
        (RUN, epoch, kind, json.dumps(data), ago),
    )


def asked(conn: Conn, name: str, kind: str = "interrupt", *, deadline: str | None = None) -> None:
    """An open question, two hours old."""
    conn.execute(
        "INSERT INTO approvals (approval_id, run_id, kind, interrupt_id, prompt, tool, idempotency_key,"
        " created_at, deadline_at, next_action_at)"
        " VALUES (%s, %s, %s, %s, 'SECRET?', 'refund', %s,"
        " now() - interval '2 hours', now() + %s, now() + %s)",
        (name, RUN, kind, name if kind == "interrupt" else None, f"cg-{name}", deadline, deadline),
    )


def answered(conn: Conn, name: str, by: str | None = "ana", status: str = "approved") -> None:
    conn.execute(
        "UPDATE approvals SET status = %s, decided_by = %s, decided_at = now() WHERE approval_id = %s",
        (status, by, name),
    )


def pending(conn: Conn, horizon: str) -> None:
    """An effect whose record is missing."""
    conn.execute(
        "INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, owner, doubt_after)"
        " VALUES ('cg-1', %s, 's', 'refund', '1', 'h', '{\"iban\": \"SECRET\"}', 'host:7', now() + %s)",
        (RUN, horizon),
    )


@pytest.fixture
def holder(database_url: str) -> Iterator[Conn]:
    """A worker's session."""
    with connect(load_config({"database_url": database_url})) as conn:
        yield conn


def test_every_status_has_its_sentence() -> None:
    assert set(sentence._SAID) == set(STATUSES)


def test_an_unknown_run_is_said_to_be_unknown(conn: Conn) -> None:
    with pytest.raises(RunNotFound, match="celegraph runs"):
        celegraph.explain_run("nobody")


# -- ready -----------------------------------------------------------------------------------------


def test_a_run_that_was_never_rung_waits_for_the_sweep(conn: Conn) -> None:
    assert re.search(r"was admitted \d+ s ago and has not started", explained())
    assert "no doorbell has reached the broker yet: the next sweep rings" in explained()


def test_a_rung_run_that_nobody_takes_names_the_queue(conn: Conn) -> None:
    change(conn, "rung_at = now() - interval '20 seconds', ring_at = now() + interval '40 seconds'")

    assert says("its doorbell was sent 20 s ago and no worker has taken it")
    assert says("nobody serves the queue 'celegraph': in 40 s the sweep rings again")


def test_without_any_sweep_the_remedy_is_to_start_one(conn: Conn) -> None:
    conn.execute("DELETE FROM ticks")

    assert "none has ever run here: start beat or a worker" in explained()


def test_an_old_sweep_is_told_with_its_age(conn: Conn) -> None:
    conn.execute("UPDATE ticks SET at = now() - interval '3 hours'")

    assert "the last one was 3 h ago: start beat or a worker" in explained()


def test_a_delayed_start_tells_when_it_wakes(conn: Conn) -> None:
    change(conn, "wake_at = now() + interval '2 hours', ring_at = now() + interval '2 hours'")

    said = explained()

    assert "sleeps until 20" in said
    assert "UTC (in 2 h): it was started with a delay" in said


def test_a_sleep_for_a_retry_tells_which_retry_and_when(conn: Conn) -> None:
    asleep(conn, "30 seconds", "TimeoutError in the graph, retry 2 of 4")

    assert says("(in 30 s): TimeoutError in the graph, retry 2 of 4")


def test_a_sleep_for_a_doubt_tells_its_horizon(conn: Conn) -> None:
    pending(conn, "50 seconds")
    asleep(conn, "50 seconds", "effect in doubt: the last call may be under way")

    assert says("in doubt: effect 'refund' (call 1, key cg-1, a call may be under way for 50 s)")


def test_an_answer_to_a_sleeping_run_is_told_to_wake_it(conn: Conn) -> None:
    asked(conn, "ap-1")
    answered(conn, "ap-1")
    asked(conn, "ap-2")
    asleep(conn, "1 hour", "TimeoutError in the graph, retry 1 of 4")

    said = explained()

    assert "the next sweep wakes it now, since ap-1 was approved by ana" in said
    assert "meanwhile waits for an answer: approval of 'refund' (ap-2, open for 2 h)" in said


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("crashed", "because its last worker died"),
        ("hung", "because its last worker hung and was fenced"),
        ("drained", "because its last worker was drained"),
        ("abandoned", "because its last worker lost its connection or the run"),
        ("worker drains", "because worker drains"),
    ],
)
def test_a_run_that_lost_its_worker_tells_how(conn: Conn, cause: str, words: str) -> None:
    change(conn, f"started_at = now(), reason = '{cause}'")

    assert words in explained()


def test_deaths_in_a_row_are_counted_against_the_limit(conn: Conn) -> None:
    change(conn, "started_at = now(), reason = 'crashed', crash_count = 1, hang_count = 1")

    assert "it has stopped its worker 2 times in a row and is quarantined at 3" in explained()


def test_a_woken_run_is_due(conn: Conn) -> None:
    change(conn, "started_at = now(), updated_at = now() - interval '5 seconds'")

    assert says("has been due for 5 s, to go on from where it stands")


def test_a_deadline_is_told_in_advance(conn: Conn) -> None:
    change(conn, "deadline_at = '2999-01-01 00:00Z'")

    assert "it is cancelled unless it ends by 2999-01-01 00:00:00 UTC" in explained()


# -- running ---------------------------------------------------------------------------------------


def test_a_running_run_names_worker_beat_and_last_step(conn: Conn, holder: Conn) -> None:
    leased(conn, holder)
    event(conn, "checkpoint", {"step": 4, "next": ["pay", "mail"]}, epoch=3)
    event(conn, "checkpoint", {"step": 9, "ns": "inner", "next": []}, epoch=3)

    assert says(
        "Run 'run-1' is held by worker host:7 for 5 min, last beat 1 s ago, after step 4 (next: pay, mail)."
    )


def test_a_running_run_before_its_first_step_says_so(conn: Conn, holder: Conn) -> None:
    leased(conn, holder)

    assert "before its first step was done" in explained()


def test_a_running_run_repeats_what_its_agent_said_last(conn: Conn, holder: Conn) -> None:
    leased(conn, holder)
    conn.execute("UPDATE run_leases SET progress = '\"page 3 of 12\"'")

    assert "its last word: page 3 of 12" in explained()
    assert celegraph.explain_run(RUN).facts["progress"] == "page 3 of 12"


def test_an_agents_overdue_heartbeat_is_told_if_its_present_owner_promised_it(
    conn: Conn, holder: Conn
) -> None:
    leased(conn, holder)
    conn.execute(
        "UPDATE run_leases SET heartbeat_due_at = now() - interval '3 minutes', heartbeat_epoch = epoch"
    )

    assert "its agent's heartbeat is overdue for 3 min: the next sweep fences it" in explained()
    conn.execute("UPDATE run_leases SET heartbeat_epoch = epoch - 1")
    assert "overdue" not in explained()


def test_a_running_run_to_be_paused_says_when(conn: Conn, holder: Conn) -> None:
    leased(conn, holder)
    change(conn, "pause_requested_at = now(), pause_reason = 'audit'")

    assert says("it is paused at its next step, as asked 0 s ago")


@pytest.mark.parametrize("status", ["ready", "waiting"])
def test_a_resting_run_to_be_paused_waits_for_the_sweep(conn: Conn, status: str) -> None:
    if status == "waiting":
        waiting(conn)
    change(conn, "pause_requested_at = now(), pause_reason = 'audit'")

    assert says("is to be paused, as asked 0 s ago; the next sweep holds it")


def test_a_call_under_way_is_named(conn: Conn, holder: Conn) -> None:
    leased(conn, holder)
    pending(conn, "30 seconds")

    assert "calling 'refund' (call 1, key cg-1)" in explained()


def test_a_worker_that_is_gone_is_told_although_its_lease_runs_on(conn: Conn, holder: Conn) -> None:
    leased(conn, holder)
    holder.execute("SELECT pg_advisory_unlock_all()")

    assert "that worker is gone: the next sweep moves it on" in explained()


def test_a_worker_without_a_beat_is_to_be_fenced(conn: Conn, holder: Conn) -> None:
    leased(conn, holder, beat="3 minutes")

    assert "it has not beaten for a lease: the next sweep fences it and moves it on" in explained()


def test_a_hanging_event_loop_is_told(conn: Conn, holder: Conn) -> None:
    leased(conn, holder, loop="20 minutes")

    assert "its event loop hangs for 20 min: the next sweep fences it" in explained()


def test_a_draining_worker_is_told(conn: Conn, holder: Conn) -> None:
    leased(conn, holder)
    conn.execute("UPDATE run_leases SET draining = true")

    assert "its worker drains and hands it back at the next step" in explained()


def test_a_cancellation_of_a_running_run_is_told(conn: Conn, holder: Conn) -> None:
    leased(conn, holder)
    change(conn, "cancel_requested_at = now()")

    assert says("it stops at its next step, as asked 0 s ago")


# -- waiting ---------------------------------------------------------------------------------------


def test_a_waiting_run_names_the_question_its_age_and_deadline(conn: Conn) -> None:
    waiting(conn)
    asked(conn, "ap-1", deadline="1 hour")

    assert explained() == (
        "Run 'run-1' waits for an answer: approval of 'refund' (ap-1, open for 2 h, deadline in 1 h)."
    )


def test_many_questions_are_counted_and_the_first_named(conn: Conn) -> None:
    waiting(conn)
    for n in range(5):
        asked(conn, f"ap-{n}")

    assert "waits for 5 answers: " in explained()
    assert explained().endswith("and 2 more.")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("effect", "approval of 'refund'"),
        ("doubt", "whether 'refund' happened"),
        ("drift", "whether 'refund' shall be called again with other arguments"),
    ],
)
def test_the_ledgers_own_questions_are_told_apart(conn: Conn, kind: str, words: str) -> None:
    waiting(conn)
    asked(conn, "ap-1", kind)

    assert f"waits for an answer: {words}" in explained()


def test_a_question_of_the_graph_needs_no_tool(conn: Conn) -> None:
    waiting(conn)
    asked(conn, "ap-1")
    conn.execute("UPDATE approvals SET tool = NULL")

    assert "a question of the graph (ap-1" in explained()


def test_a_passed_deadline_waits_for_the_escalation(conn: Conn) -> None:
    waiting(conn)
    asked(conn, "ap-1", deadline="-2 minutes")

    assert "deadline passed 2 min ago" in explained()
    assert "the escalation closes what is past its deadline, but none has ever run here" in explained()

    record_tick(conn, "escalate", {})
    assert "the next escalation closes what is past its deadline" in explained()

    conn.execute("UPDATE ticks SET at = now() - interval '5 minutes' WHERE name = 'escalate'")
    assert "but the last one was 5 min ago: start beat or a worker" in explained()


def test_an_answer_that_nobody_took_in_yet_is_told(conn: Conn) -> None:
    waiting(conn)
    asked(conn, "ap-1")
    answered(conn, "ap-1", by=None, status="expired")

    assert "waited, and ap-1 was expired; the next sweep makes it ready" in explained()


def test_a_changed_graph_names_the_node_and_the_ways_out(conn: Conn) -> None:
    at_rest(
        conn,
        "waiting",
        "waits_for = 'code', reason = 'graph changed: pay is pending and today''s graph does not know it'",
    )

    said = explained()

    assert says("has waited for other code for 0 s: graph changed: pay is pending", said)
    assert "start a worker whose code knows it again, or cancel it" in said


def test_a_wait_without_a_question_is_not_glossed_over(conn: Conn) -> None:
    waiting(conn)

    assert "nothing is asked of anybody; see `celegraph trace`, or cancel it" in explained()


# -- stops and ends --------------------------------------------------------------------------------


def test_a_paused_run_tells_why_and_how_it_goes_on(conn: Conn) -> None:
    at_rest(conn, "paused", "reason = 'audit'")
    asked(conn, "ap-1")
    answered(conn, "ap-1")

    said = explained()

    assert says("was paused 0 s ago (audit)", said)
    assert "ap-1 was approved by ana, which is kept; `celegraph resume run-1` makes it ready" in said


def test_a_quarantined_run_names_its_last_step_and_the_release(conn: Conn) -> None:
    at_rest(
        conn,
        "quarantined",
        "reason = 'stopped its worker 3 times without progress after step 4 (next: pay)'",
    )

    said = explained()

    assert "it stopped its worker 3 times without progress after step 4 (next: pay)" in said
    assert "`celegraph release run-1` lets it go on" in said


def test_a_failed_run_tells_the_error_and_the_retry(conn: Conn) -> None:
    error = '{"type": "ValueError", "message": "no such order"}'
    at_rest(conn, "failed", f"reason = 'ValueError in the graph', error = '{error}'")

    said = explained()

    assert "ValueError in the graph: no such order" in said
    assert "`celegraph retry run-1` goes on from its last durable step" in said


def test_a_cancelled_run_still_names_its_doubt(conn: Conn) -> None:
    at_rest(conn, "cancelled", "reason = 'customer left'")
    pending(conn, "-1 hour")

    assert says("was cancelled 0 s ago (customer left)")
    assert (
        "in doubt: effect 'refund' (call 1, key cg-1); `celegraph resolve cg-1 ...` settles it" in explained()
    )


def test_a_finished_run_tells_how_long_it_took(conn: Conn) -> None:
    change(conn, "created_at = now() - interval '26 hours'")
    at_rest(conn, "finished")

    assert says("Run 'run-1' finished 0 s ago, 1 d 2 h after it was admitted.")


@pytest.mark.parametrize("status", ["ready", "waiting", "paused", "quarantined"])
def test_a_resting_run_to_be_cancelled_waits_for_the_sweep(conn: Conn, status: str) -> None:
    if status == "waiting":
        waiting(conn)
    elif status != "ready":
        at_rest(conn, status)
    change(conn, "cancel_requested_at = now()")

    assert re.search(r"to be cancelled, as asked \d+ s ago; the next sweep ends it", explained())


def test_a_run_past_its_deadline_says_so(conn: Conn) -> None:
    change(conn, "cancel_requested_at = now(), deadline_at = now() - interval '1 minute'")

    assert says("is to be cancelled, for its deadline has passed (asked 0 s ago)")


# -- facts -----------------------------------------------------------------------------------------


def test_the_facts_are_plain_json_without_anything_of_the_customers(conn: Conn, holder: Conn) -> None:
    leased(conn, holder)
    asked(conn, "ap-1", deadline="1 hour")
    pending(conn, "1 minute")

    explanation = celegraph.explain_run(RUN)

    assert (explanation.run_id, explanation.status) == (RUN, "running")
    assert json.loads(json.dumps(explanation.facts)) == explanation.facts
    assert explanation.facts["holder"]["locked"] is True
    assert [q["approval_id"] for q in explanation.facts["questions"]] == ["ap-1"]
    assert [p["key"] for p in explanation.facts["pending_effects"]] == ["cg-1"]
    assert datetime.fromisoformat(explanation.facts["now"]).tzinfo is not None
    assert "SECRET" not in json.dumps(explanation.facts) + explanation.sentence


def test_explaining_writes_nothing_and_waits_for_nobody(conn: Conn, database_url: str) -> None:
    with psycopg.connect(database_url) as writer:
        writer.execute("UPDATE celegraph.runs SET reason = 'being written'")

        assert "being written" not in explained()


# -- enqueued effects ------------------------------------------------------------------------------


def enqueued(
    conn: Conn, status: str = "pending", attempts: int = 0, tries: str | None = "0", **error: Any
) -> None:
    """A released intent; `tries` None: nobody tries it any more."""
    conn.execute(
        "INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, mode, status,"
        " attempts, error, released_at, next_try_at)"
        " VALUES ('cg-mail', %s, 'send@1', 'mail', '#1', '', '{}', 'outbox', %s, %s, %s, now(),"
        " now() + %s::interval)",
        (RUN, status, attempts, json.dumps({"type": "E"} | error) if status == "failed" else None, tries),
    )


def test_an_intent_that_nobody_has_tried_yet_is_no_doubt(conn: Conn) -> None:
    at_rest(conn, "finished")
    enqueued(conn)

    assert "in doubt" not in explained()
    assert celegraph.explain_run(RUN).facts["pending_effects"] == []


def test_an_intent_that_is_due_waits_for_the_dispatch_and_says_when_none_runs(conn: Conn) -> None:
    at_rest(conn, "finished")
    enqueued(conn)

    assert "the dispatch makes the enqueued effect 'mail' (key cg-mail), but none has ever run" in explained()

    record_tick(conn, "dispatch", {})
    assert "the next dispatch makes the enqueued effect 'mail' (key cg-mail)." in explained()


def test_an_intent_that_was_refused_tells_when_it_is_tried_again(conn: Conn) -> None:
    record_tick(conn, "dispatch", {})
    waiting(conn)
    asked(conn, "ap-1")
    enqueued(conn, "failed", 3, "50 seconds")

    assert re.search(r"makes the enqueued effect 'mail' \(key cg-mail, tried 3 times\) in \d+ s", explained())


def test_a_dead_letter_is_told_with_the_way_out(conn: Conn) -> None:
    at_rest(conn, "finished")
    enqueued(conn, "failed", 8, None)

    said = explained()

    assert "the enqueued effect 'mail' (key cg-mail) failed 8 times and is tried no more" in said
    assert "celegraph.release_effect lets it be tried again" in said
    assert celegraph.explain_run(RUN).facts["intents"][0]["tries_in_s"] is None


@pytest.mark.parametrize("answer", ["skipped", "final"])
def test_an_intent_that_somebody_ended_is_not_told(conn: Conn, answer: str) -> None:
    at_rest(conn, "finished")
    enqueued(conn, "failed", 1, None, **{answer: True})

    assert "enqueued" not in explained()
