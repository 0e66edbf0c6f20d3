"""cancel, pause, resume, retry, release: they write the ledger, the sweep rings."""

from __future__ import annotations

import pytest

from celegraph.ledger.pool import ledger
from celegraph.testing.driver import Driven
from tests.cli.conftest import CommandLine


def test_cancel_ends_a_resting_run_and_closes_its_question(cli: CommandLine, waiting: Driven) -> None:
    result = cli("cancel", "run-1", "--reason", "customer left")

    assert result.stdout == "run run-1 is cancelled\n"
    assert (waiting.run.status, waiting.run.reason) == ("cancelled", "customer left")
    assert cli.json("approvals") == []


def test_cancel_of_a_running_run_is_a_request(cli: CommandLine, waiting: Driven) -> None:
    with ledger(waiting.installation.config) as conn:
        conn.execute("UPDATE runs SET status = 'running', waits_for = NULL")

    assert cli.json("cancel", "run-1") == {"run_id": "run-1", "status": "running"}
    assert waiting.run.cancel_requested_at is not None


def test_retry_makes_a_failed_run_ready_to_be_rung(cli: CommandLine, failed: Driven) -> None:
    result = cli("retry", "run-2", "--by", "ana")

    assert result.stdout == "run run-2 is ready and goes on from its last durable step\n"
    assert (failed.run.status, failed.run.rung_at) == ("ready", None)
    assert [event.data for event in failed.events if event.kind == "retried"] == [{"by": "ana"}]


def test_release_forgives_the_crashes(cli: CommandLine, waiting: Driven) -> None:
    with ledger(waiting.installation.config) as conn:
        conn.execute("UPDATE runs SET status = 'quarantined', waits_for = NULL, crash_count = 3")

    assert cli.json("release", "run-1") == {"run_id": "run-1", "status": "ready"}
    assert waiting.run.crash_count == 0


def test_a_run_is_paused_and_resumed(cli: CommandLine, waiting: Driven) -> None:
    assert cli("pause", "run-1", "--reason", "audit").stdout == "run run-1 is paused\n"
    assert (waiting.run.status, waiting.run.reason) == ("paused", "audit")
    assert "`celegraph resume run-1`" in cli("explain", "run-1").stdout

    assert cli("resume", "run-1", "--by", "ana").stdout == "run run-1 is ready and goes on\n"
    assert [event.data for event in waiting.events if event.kind == "resumed"] == [{"by": "ana"}]


def test_a_pause_of_a_running_run_is_a_request_that_can_be_taken_back(
    cli: CommandLine, waiting: Driven
) -> None:
    with ledger(waiting.installation.config) as conn:
        conn.execute("UPDATE runs SET status = 'running', waits_for = NULL")

    assert cli("pause", "run-1").stdout == "run run-1 is paused at its next step\n"
    assert cli.json("runs")[0]["pause_requested_at"] is not None
    assert cli.json("resume", "run-1") == {"run_id": "run-1", "status": "running"}
    assert waiting.run.pause_requested_at is None


@pytest.mark.parametrize("verb", ["resume", "retry", "release"])
def test_a_run_in_another_status_is_left_alone(cli: CommandLine, waiting: Driven, verb: str) -> None:
    result = cli(verb, "run-1")

    assert (result.exit_code, result.stderr) == (1, f"error: cannot {verb} run 'run-1': it is waiting\n")


def test_a_dead_letter_of_the_outbox_is_tried_again(cli: CommandLine, waiting: Driven) -> None:
    with ledger(waiting.installation.config) as conn:
        conn.execute(
            "INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, mode, status,"
            " attempts, error, released_at)"
            " VALUES ('cg-mail', 'run-1', 's', 'mail', '#1', '', '{}', 'outbox',"
            " 'failed', 8, '{\"type\": \"ConnectionRefusedError\"}', now())"
        )

    result = cli("release-effect", "cg-mail", "--by", "ana")

    assert result.stdout == "effect 'mail' (cg-mail) of run run-1 is tried again\n"
    assert [event.data["by"] for event in waiting.events if event.kind == "effect released"] == ["ana"]
    refused = cli("release-effect", "cg-mail", "--by", "ana")
    assert (refused.exit_code, "no effect 'cg-mail'" in refused.stderr) == (1, True)
