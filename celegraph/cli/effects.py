"""`celegraph effects RUN`: what the run has done to the world, and what is in doubt.  No arguments."""

from __future__ import annotations

import click

from celegraph.cli.options import Settings, command
from celegraph.cli.shown import chosen, instant, say, say_json, say_table
from celegraph.ledger.effect_row import Effect
from celegraph.ledger.effects import effects_of
from celegraph.ledger.pool import ledger
from celegraph.ledger.runs import get_run

_SHOWN = (
    "idempotency_key",
    "tool",
    "step",
    "slot",
    "mode",
    "status",
    "attempts",
    "duplicates_prevented",
    "provider_ref",
    "owner",
    "doubt_after",
    "created_at",
    "updated_at",
)


@command("effects")
@click.argument("run_id", metavar="RUN")
def effects(settings: Settings, run_id: str) -> None:
    """List the effects of a run in the order they were reserved."""
    with ledger(settings.config()) as conn:
        get_run(conn, run_id)
        found = effects_of(conn, run_id)
    if settings.json:
        say_json([chosen(effect, _SHOWN) for effect in found])
        return
    if not found:
        say("no effects")
        return
    say_table(
        ("key", "tool", "mode", "status", "attempts", "spared", "reference", "changed", "step", "slot"),
        (_row(effect) for effect in found),
    )


def _row(e: Effect) -> tuple[str, ...]:
    # "spared": calls that were wanted again and got the recorded result instead.
    counted = str(e.attempts), str(e.duplicates_prevented)
    ref, at = e.provider_ref or "-", instant(e.updated_at)
    return e.idempotency_key, e.tool, e.mode, e.status, *counted, ref, at, e.step, e.slot
