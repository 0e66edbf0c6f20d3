"""How far a sweep reaches: every dead run of its own schema, and nobody else's sessions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import psycopg

from celegraph.agent.migrate import migrate
from celegraph.config import Config, load_config
from celegraph.ledger import runs
from celegraph.ledger.connect import Conn, connect, pen_name
from celegraph.ledger.keys import lock_key
from celegraph.ledger.runs import Admission
from celegraph.ledger.sweep import sweep_once

_OWNED = """
UPDATE runs SET status = 'running', ring_at = NULL, updated_at = ledger_now() - %(age)s::interval
 WHERE run_id = %(run_id)s
"""
_LEASED = """
UPDATE run_leases
   SET epoch = 1, worker_id = 'w', backend_pid = 1, lease_for = '60s',
       expires_at = ledger_now() + interval '60s', beat_at = ledger_now(), loop_seen_at = ledger_now()
 WHERE run_id = %(run_id)s
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
