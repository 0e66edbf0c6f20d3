"""The sweep reads what is due, whatever else there is: 100,000 rows change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from celegraph.config import load_config
from celegraph.ledger.connect import Conn, connect
from celegraph.ledger.queries import load

ROWS = 100_000

FILL = f"""
INSERT INTO runs (run_id, lock_key, agent, status, waits_for, input, max_crashes, ring_at,
                  created_at, updated_at)
SELECT 'run-' || n, n, 'agent-' || n % 1000,
       CASE WHEN n % 1000 = 0 THEN 'ready' WHEN n % 1000 = 1 THEN 'running' ELSE 'waiting' END,
       CASE WHEN n % 1000 > 1 THEN CASE WHEN n % 1000 = 2 THEN 'code' ELSE 'decision' END END,
       '{{}}', 3, CASE WHEN n % 1000 = 0 THEN ledger_now() + make_interval(secs => n - 50000) END,
       ledger_now() - make_interval(secs => n), ledger_now() - make_interval(secs => n)
  FROM generate_series(1, {ROWS}) n;
INSERT INTO run_leases (run_id) SELECT run_id FROM runs;
INSERT INTO approvals (approval_id, run_id, kind, interrupt_id, prompt, deadline_at, next_action_at, status,
                       decided_at, consumed_at)
SELECT 'ap-' || n, 'run-' || n, 'interrupt', 'i-' || n, 'go?', ledger_now() + make_interval(secs => n),
       ledger_now() + make_interval(secs => n),
       CASE WHEN n % 2 = 0 THEN 'open' ELSE 'approved' END,
       CASE WHEN n % 2 = 1 THEN ledger_now() END,
       CASE WHEN n % 2 = 1 AND n % 5000 <> 3 THEN ledger_now() END
  FROM generate_series(1, {ROWS}) n;
UPDATE runs SET cancel_requested_at = ledger_now() WHERE run_id IN ('run-7', 'run-8');
UPDATE runs SET pause_requested_at = ledger_now() WHERE run_id IN ('run-9', 'run-10');
UPDATE runs SET deadline_at = ledger_now() + interval '1 day' WHERE lock_key % 10 = 0;
INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, mode, status, released_at)
SELECT 'cg-' || n, 'run-' || n, 'send@1', CASE WHEN n % 2 = 0 THEN 'mail' ELSE 'refund' END, '#1', '', '{{}}',
       CASE WHEN n % 2 = 0 THEN 'outbox' ELSE 'call' END, 'sent', CASE WHEN n % 2 = 0 THEN ledger_now() END
  FROM generate_series(1, {ROWS}) n;
UPDATE effects
   SET status = 'pending',
       doubt_after = ledger_now() + make_interval(secs => substr(run_id, 5)::integer - 50000)
 WHERE mode = 'call' AND substr(run_id, 5)::integer % 10 = 1;
INSERT INTO runs (run_id, lock_key, agent, status, input, max_crashes, created_at, finished_at,
                  checkpoints_pruned_at, events_pruned_at)
SELECT 'ended-' || n, n, 'agent-' || n % 1000, 'finished', '{{}}', 3, ledger_now(),
       ledger_now() - make_interval(secs => n),
       CASE WHEN n % 100 > 0 THEN ledger_now() END, CASE WHEN n % 100 > 0 THEN ledger_now() END
  FROM generate_series(1, {ROWS}) n;
INSERT INTO run_events (run_id, kind) SELECT 'ended-' || n, 'finished' FROM generate_series(1, {ROWS}) n;
INSERT INTO checkpoints (thread_id, checkpoint_id, checkpoint)
SELECT 'ended-' || n % 1000, n::text, '{{"channel_versions": {{"seen": "1"}}}}'
  FROM generate_series(1, {ROWS}) n;
INSERT INTO checkpoint_writes (thread_id, checkpoint_id, task_id, idx, channel, blob)
SELECT 'ended-' || n % 1000, n::text, 'task', 0, 'seen', '' FROM generate_series(1, {ROWS}) n;
INSERT INTO checkpoint_blobs (thread_id, channel, version, type)
SELECT 'ended-' || n % 1000, 'seen', n::text, 'empty' FROM generate_series(1, {ROWS}) n;
"""


@pytest.fixture(scope="module")
def conn(module_database_url: str) -> Iterator[Conn]:
    with connect(load_config({"database_url": module_database_url})) as conn:
        for statement in FILL.split(";"):
            if statement.strip():
                conn.execute(statement.encode())
        conn.execute("ANALYZE")
        yield conn


_OF_ONE_RUN: dict[str, object] = {"run_id": "ended-100", "resumable": True, "rows": 2000}

_UNASKED: dict[str, object] = {
    "unaided": ["mail"],
    "looked_up": ["refund"],
    "look_up_for": timedelta(minutes=10),
    "limit": 10,
}

QUERIES: list[tuple[str, str, str, dict[str, object]]] = [
    (
        "sweep",
        "running",
        "runs_running",
        {"hang_after": timedelta(minutes=10), "limit": 500, "after_at": None, "after_id": None},
    ),
    ("sweep", "due_rings", "runs_ringing", {"limit": 10}),
    ("sweep", "due_again", "runs_ringing", {"limit": 10, "room": 5}),
    ("sweep", "wake_for_code", "runs_waiting_for_code", {"limit": 10}),
    ("sweep", "wake_decided", "approvals_unconsumed", {"limit": 10}),
    ("sweep", "cancelling", "runs_cancelling", {"limit": 10}),
    ("sweep", "pause_requested", "runs_pausing", {"limit": 10}),
    ("approvals", "close_answered_doubts", "approvals_open_doubts", {"run_id": None, "limit": 10}),
    ("sweep", "past_deadline", "runs_deadlines", {"limit": 10}),
    ("sweep", "orphan_locks", "runs_by_lock", {"lease": timedelta(minutes=1)}),
    ("sweep", "unanswered", "runs_ringing", {"limit": 10}),
    ("sweep", "lost_rings", "runs_ringing", {"limit": 10}),
    ("outbox", "doubtful", "effects_dispatching", {"tools": ["mail"], "horizons": "{}", "limit": 10}),
    ("sweep", "consume_ended", "approvals_unconsumed", {"limit": 10}),
    ("doubts", "resting", "effects_resting", {"tools": ["mail"], "limit": 10}),
    ("doubts", "unasked", "effects_in_doubt", _UNASKED),
    ("approvals", "move_due", "approvals_acting", {"limit": 10}),
    ("prune", "due_checkpoints", "runs_checkpoints_to_prune", {"keep": timedelta(hours=1)}),
    ("prune", "due_events", "runs_events_to_prune", {"keep": timedelta(hours=1)}),
    ("prune", "drop_checkpoints", "checkpoints_", _OF_ONE_RUN),
    ("prune", "drop_writes", "checkpoint_writes_", _OF_ONE_RUN),
    ("prune", "drop_blobs", "checkpoint_blobs_", _OF_ONE_RUN),
    ("prune", "drop_reads", "effects_once_per_slot", _OF_ONE_RUN | {"resumable": False}),
    ("prune", "drop_events", "run_events_by_run", _OF_ONE_RUN),
]


@pytest.mark.parametrize(("file", "name", "index", "params"), QUERIES, ids=[q[1] for q in QUERIES])
def test_a_periodic_query_uses_its_partial_index_and_reads_no_table_whole(
    conn: Conn, file: str, name: str, index: str, params: dict[str, object]
) -> None:
    row = conn.execute(b"EXPLAIN (FORMAT JSON) " + getattr(load(file), name), params).fetchone()
    assert row is not None
    nodes = list(walk(row["QUERY PLAN"][0]["Plan"]))

    # By its beginning, where several indexes of one table serve as well.
    assert any(str(node.get("Index Name")).startswith(index) for node in nodes)
    big = {"runs", "approvals", "effects", "run_leases", "run_events"}
    big |= {"checkpoints", "checkpoint_writes", "checkpoint_blobs"}
    assert [n for n in nodes if n["Node Type"] == "Seq Scan" and n["Relation Name"] in big] == []


@pytest.mark.parametrize(
    ("sql", "index"),
    [
        ("SELECT FROM runs WHERE status = 'ready' AND ring_at <= ledger_now() ORDER BY ring_at LIMIT 9",
         "runs_ringing"),
        ("SELECT run_id FROM runs WHERE status = 'running' ORDER BY updated_at LIMIT 9", "runs_running"),
    ],
)  # fmt: skip
def test_the_indexed_time_orders_without_a_sort(conn: Conn, sql: str, index: str) -> None:
    row = conn.execute(f"EXPLAIN (FORMAT JSON) {sql}".encode()).fetchone()
    assert row is not None
    nodes = list(walk(row["QUERY PLAN"][0]["Plan"]))

    assert [n["Node Type"] for n in nodes if "Sort" in n["Node Type"]] == []
    assert index in {node.get("Index Name") for node in nodes}


def walk(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from walk(below)
