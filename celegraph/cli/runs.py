"""`celegraph runs`: which runs there are, the newest first.  Nothing of their input or output."""

from __future__ import annotations

import click

import celegraph
from celegraph.cli.options import Settings, command
from celegraph.cli.shown import chosen, instant, say, say_json, say_table
from celegraph.ledger.states import STATUSES

_SHOWN = (
    "run_id",
    "agent",
    "status",
    "reason",
    "waits_for",
    "wake_at",
    "worker_id",
    "progress",
    "crash_count",
    "hang_count",
    "retry_count",
    "cancel_requested_at",
    "pause_requested_at",
    "created_at",
    "started_at",
    "updated_at",
    "finished_at",
)


@command("runs")
@click.option("--status", type=click.Choice(STATUSES), help="Only runs in this status.")
@click.option("--agent", help="Only runs of this agent.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="At most so many.")
def runs(settings: Settings, status: str | None, agent: str | None, limit: int) -> None:
    """List runs, the newest first."""
    settings.install()
    found = celegraph.list_runs(status=status, agent=agent, limit=limit)
    if settings.json:
        say_json([chosen(run, _SHOWN) for run in found])
        return
    if not found:
        say("no runs")
        return
    say_table(
        ("run", "agent", "status", "created", "changed", "reason"),
        (
            (r.run_id, r.agent, r.status, instant(r.created_at), instant(r.updated_at), r.reason or "")
            for r in found
        ),
    )
