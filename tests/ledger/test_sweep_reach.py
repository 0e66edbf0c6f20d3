"""How far a sweep reaches: every dead run of its own schema, and nobody else's sessions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest

from celegraph.agent.migrate import migrate
from celegraph.config import Config, load_config
from celegraph.ledger import runs
from celegraph.ledger.approvals import move_due
from celegraph.ledger.connect import Conn, connect, pen_name
from celegraph.ledger.keys import lock_key
from celegraph.ledger.runs import Admission
from celegraph.ledger.sweep import sweep_once, unring, wake

_OWNED = """
UPDATE runs
   SET status = 'running', wake_at = NULL, ring_at = NULL, updated_at = ledger_now() - %(age)s::interval
 WHERE run_id = %(run_id)s
"""
_LEASED = """
UPDATE run_leases
   SET epoch = 1, worker_id = 'w', backend_pid = 1, lease_for = '60s',
       expires_at = ledger_now() + interval '60s', beat_at = ledger_now(), loop_seen_at = ledger_now()
 WHERE run_id = %(run_id)s
"""
_READY_LATER = """
UPDATE runs SET wake_at = ledger_now() + interval '1 hour', ring_at = ledger_now() + interval '1 hour',
       updated_at = ledger_now() - %(age)s::interval
 WHERE run_id = %(run_id)s
"""
_ANSWERED = """
INSERT INTO approvals (approval_id, run_id, kind, interrupt_id, prompt, status, decided_at)
VALUES (%(run_id)s, %(run_id)s, 'interrupt', 'i', 'go?', 'approved', ledger_now())
"""
_OVERDUE = """
INSERT INTO approvals (approval_id, run_id, kind, interrupt_id, prompt, policy, deadline_at)
VALUES (%(run_id)s, %(run_id)s, 'interrupt', 'i', 'go?', '{"on_timeout": "cancel"}',
        ledger_now() - interval '1 s')
"""


def _running(conn: Conn, run_id: str, age: timedelta) -> None:
    conn.execute(_OWNED, {"run_id": run_id, "age": age})
    conn.execute(_LEASED, {"run_id": run_id})


def test_live_runs_however_many_do_not_hide_a_dead_one(
    config: Config, conn: Conn, admit: Callable[[str], str]
) -> None:
    for hours, run_id in ((3, "live-1"), (2, "live-2"), (1, "dead")):
        _running(conn, admit(run_id), timedelta(hours=hours))
    for run_id in ("live-1", "live-2"):
        conn.execute("SELECT pg_advisory_lock(%s)", (lock_key(run_id),))

    report = sweep_once(conn, config, limit=1)

    assert report.recovered == ["dead"]


@pytest.mark.timeout(20)
def test_a_run_that_a_hosts_open_transaction_holds_does_not_hold_up_the_others(
    config: Config, conn: Conn, admit: Callable[[str], str]
) -> None:
    """Of dead owners, of answered questions, of cancellations, and of questions past their deadline."""
    ages = timedelta(hours=2), timedelta(hours=1)
    for kind in ("dead", "decided", "cancelled", "overdue"):
        for place, age in zip(("held", "free"), ages, strict=True):
            conn.execute(_READY_LATER, {"run_id": admit(f"{kind}-{place}"), "age": age})
    for run_id in ("dead-held", "dead-free"):
        _running(conn, run_id, timedelta(hours=1))
    for run_id in ("decided-held", "decided-free"):
        conn.execute(_ANSWERED, {"run_id": run_id})
    conn.execute("UPDATE runs SET cancel_requested_at = ledger_now() WHERE run_id LIKE 'cancelled-%'")
    for run_id in ("overdue-held", "overdue-free"):
        conn.execute(_OVERDUE, {"run_id": run_id})

    with connect(config) as host, host.transaction():
        host.execute("UPDATE runs SET tags = '{}' WHERE run_id LIKE '%-held'")
        report = sweep_once(conn, config)
        moved = [question.run_id for question in move_due(conn)]
        assert not wake(conn, "decided-held")
        unring(conn, ["decided-held", "decided-free"])

    assert (report.recovered, report.cancelled) == (["dead-free"], ["cancelled-free"])
    assert (report.woken, moved) == (["decided-free"], ["overdue-free"])
    again = sweep_once(conn, config)
    assert (again.recovered, set(again.cancelled)) == (["dead-held"], {"cancelled-held", "overdue-free"})
    assert "decided-held" in again.woken
    assert [question.run_id for question in move_due(conn)] == ["overdue-held"]


def test_the_sweep_of_another_schema_does_not_end_the_owner_of_a_run_with_the_same_id(
    empty_database_url: str,
) -> None:
    configs = {}
    for schema in ("one", "two"):
        migrate(empty_database_url, schema)
        configs[schema] = load_config({"database_url": empty_database_url, "schema": schema})
    with connect(configs["two"]) as conn:
        runs.admit(conn, Admission("same", "agent", {}, max_crashes=3))
        conn.execute("UPDATE runs SET updated_at = updated_at - interval '1 hour'")

        owner = psycopg.connect(empty_database_url, autocommit=True, application_name=pen_name("one"))
        with owner:
            owner.execute("SELECT pg_advisory_lock(%s)", (lock_key("same"),))
            later = "SELECT set_config('celegraph.now', (clock_timestamp() + interval '1 hour')::text, false)"
            conn.execute(later)
            stranger = sweep_once(conn, configs["two"])
            owner.execute("SELECT set_config('application_name', %s, false)", (pen_name("two"),))
            mine = sweep_once(conn, configs["two"])

    assert (stranger.terminated, mine.terminated) == ([], ["same"])
