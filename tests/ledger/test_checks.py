"""The tables refuse rows that mean nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from celegraph.config import load_config
from celegraph.ledger.connect import Conn, connect


@pytest.fixture
def conn(module_database_url: str) -> Iterator[Conn]:
    """What a test writes is gone after it."""
    config = load_config({"database_url": module_database_url})
    with connect(config) as conn, conn.transaction(force_rollback=True):
        yield conn


RUN = [
    ("status = 'asleep', ring_at = NULL", "runs_status"),
    ("status = 'finished'", "runs_finished_at_iff_terminal"),
    ("finished_at = ledger_now()", "runs_finished_at_iff_terminal"),
    ("ring_at = NULL", "runs_ring_at_iff_ready"),
    ("status = 'running'", "runs_ring_at_iff_ready"),
    ("status = 'paused', ring_at = NULL, wake_at = ledger_now()", "runs_wake_at_only_ready"),
    ("status = 'waiting', ring_at = NULL", "runs_waits_for_iff_waiting"),
    ("status = 'waiting', ring_at = NULL, waits_for = 'luck'", "runs_waits_for_iff_waiting"),
    ("waits_for = 'code'", "runs_waits_for_iff_waiting"),
    ("output = '1'", "runs_output_only_finished"),
    ("run_id = ''", "runs_run_id_length"),
    ("run_id = repeat('x', 201)", "runs_run_id_length"),
]


@pytest.mark.parametrize(("change", "constraint"), RUN, ids=[change for change, _ in RUN])
def test_an_impossible_run_is_refused(
    conn: Conn, admit: Callable[[str], str], change: str, constraint: str
) -> None:
    admit("run-1")

    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        conn.execute(f"UPDATE runs SET {change}".encode())
    assert refused.value.diag.constraint_name == constraint


LEASE = ["worker_id = 'w'", "backend_pid = 1", "expires_at = ledger_now()", "lease_for = '1 s'"]


@pytest.mark.parametrize("change", LEASE)
def test_a_half_owned_lease_is_refused(conn: Conn, admit: Callable[[str], str], change: str) -> None:
    admit("run-1")

    with pytest.raises(psycopg.errors.CheckViolation, match="run_leases_owner_whole"):
        conn.execute(f"UPDATE run_leases SET {change}".encode())


EFFECT = [
    ("status = 'perhaps'", "effects_status"),
    ("mode = 'both'", "effects_mode"),
    ("doubt_after = NULL", "effects_pending_has_horizon"),
    ("status = 'failed'", "effects_failed_says_why"),
]


@pytest.mark.parametrize(("change", "constraint"), EFFECT)
def test_an_impossible_effect_is_refused(
    conn: Conn, admit: Callable[[str], str], change: str, constraint: str
) -> None:
    reserve(conn, admit("run-1"), "cg-1", "#1")

    with pytest.raises(psycopg.errors.CheckViolation, match=constraint):
        conn.execute(f"UPDATE effects SET {change}".encode())


def test_one_slot_of_a_step_holds_one_effect(conn: Conn, admit: Callable[[str], str]) -> None:
    reserve(conn, admit("run-1"), "cg-1", "#1")

    with pytest.raises(psycopg.errors.UniqueViolation, match="effects_once_per_slot"):
        reserve(conn, "run-1", "cg-2", "#1")


APPROVAL = [
    ("status = 'maybe', decided_at = ledger_now()", "approvals_status"),
    ("status = 'approved'", "approvals_decided_iff_closed"),
    ("decided_at = ledger_now()", "approvals_decided_iff_closed"),
    ("consumed_at = ledger_now()", "approvals_consumed_only_closed"),
    ("status = 'expired', decided_at = ledger_now(), decided_by = 'anna'", "approvals_expired_by_nobody"),
    ("interrupt_id = NULL", "approvals_interrupt_named"),
    ("kind = 'guess', interrupt_id = NULL, idempotency_key = 'cg-1'", "approvals_kind"),
    ("kind = 'doubt', interrupt_id = NULL", "approvals_effect_named"),
]


@pytest.mark.parametrize(("change", "constraint"), APPROVAL)
def test_an_impossible_approval_is_refused(
    conn: Conn, admit: Callable[[str], str], change: str, constraint: str
) -> None:
    ask(conn, admit("run-1"), "ap-1", "i-1")

    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        conn.execute(f"UPDATE approvals SET {change}".encode())
    assert refused.value.diag.constraint_name == constraint


def test_an_interrupt_has_one_open_question_and_an_approval_pays_for_one_effect(
    conn: Conn, admit: Callable[[str], str]
) -> None:
    ask(conn, admit("run-1"), "ap-1", "i-1")
    with (
        pytest.raises(psycopg.errors.UniqueViolation, match="approvals_one_open_per_interrupt"),
        conn.transaction(),
    ):
        ask(conn, "run-1", "ap-2", "i-1")

    ask(conn, "run-1", "ap-3", "i-2")
    conn.execute("UPDATE approvals SET effect_key = 'cg-1' WHERE approval_id = 'ap-1'")
    with pytest.raises(psycopg.errors.UniqueViolation, match="effect_key"):
        conn.execute("UPDATE approvals SET effect_key = 'cg-1' WHERE approval_id = 'ap-3'")


def reserve(conn: Conn, run_id: str, key: str, slot: str) -> None:
    conn.execute(
        "INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, doubt_after)"
        " VALUES (%s, %s, 'node@1', 'pay', %s, 'h', '{}', ledger_now())",
        (key, run_id, slot),
    )


def ask(conn: Conn, run_id: str, approval_id: str, interrupt_id: str) -> None:
    conn.execute(
        "INSERT INTO approvals (approval_id, run_id, kind, interrupt_id, prompt)"
        " VALUES (%s, %s, 'interrupt', %s, 'go?')",
        (approval_id, run_id, interrupt_id),
    )
