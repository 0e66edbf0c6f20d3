"""prune: removes what ended runs have outlived, and says what."""

from __future__ import annotations

from celegraph.ledger.pool import ledger
from celegraph.testing.driver import Driven
from tests.cli.conftest import CommandLine


def old(run: Driven) -> None:
    run.pass_time("40d")


def test_without_a_span_nothing_is_removed_and_the_remedy_is_said(cli: CommandLine) -> None:
    result = cli("prune")

    assert result.exit_code == 1
    assert "give --checkpoints 30d or --events 90d" in result.stderr


def test_a_span_nobody_can_read_is_a_usage_error(cli: CommandLine) -> None:
    result = cli("prune", "--checkpoints", "soon")

    assert result.exit_code == 2
    assert "write '90s', '10m', '2h', '1d'" in result.stderr


def test_what_has_ended_long_ago_is_removed_and_counted(
    cli: CommandLine, waiting: Driven, failed: Driven
) -> None:
    for run in (waiting, failed):
        old(run)
    events = len(waiting.events)

    counts = cli.json("prune", "--checkpoints", "30d", "--events", "30d")

    assert counts["runs"] == 1
    assert counts["checkpoints"] >= 1
    assert counts["events"] >= 1
    assert failed.events == []
    assert len(waiting.events) == events
    assert cli("prune", "--checkpoints", "30d").stdout.startswith("pruned 0 runs: removed 0 checkpoints")


def test_what_has_ended_a_moment_ago_is_kept(cli: CommandLine, failed: Driven) -> None:
    assert cli.json("prune", "--checkpoints", "30d")["runs"] == 0
    with ledger(failed.installation.config) as conn:
        row = conn.execute("SELECT checkpoints_pruned_at FROM runs WHERE run_id = 'run-2'").fetchone()
    assert row == {"checkpoints_pruned_at": None}
