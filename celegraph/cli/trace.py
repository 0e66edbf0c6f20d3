"""`celegraph trace RUN`: every event of the run, in order, without anything of the customer's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from typing import Any

import click

import celegraph
from celegraph.cli.options import Settings, command
from celegraph.cli.shown import chosen, pairs, say_json, say_table
from celegraph.ledger.runs import Event

# What may be printed of an event.  A list of what is safe: a drift's event holds both calls' arguments.
_SHOWN = (
    "about",
    "agent",
    "answer",
    "approval_id",
    "attempt",
    "backend_pid",
    "by",
    "checkpoint_id",
    "crashes",
    "hangs",
    "key",
    "late",
    "next",
    "node",
    "ns",
    "on_timeout",
    "progress",
    "reason",
    "slot",
    "status",
    "step",
    "text",
    "tokens",
    "tool",
    "worker",
)


@command("trace")
@click.argument("run_id", metavar="RUN")
def trace(settings: Settings, run_id: str) -> None:
    """Print every event of a run in order, with the keys of its effects."""
    settings.install()
    found = list(_all(run_id))
    if settings.json:
        say_json([chosen(event, ("seq", "at", "epoch", "kind")) | {"data": _safe(event)} for event in found])
        return
    say_table(("#", "at (UTC)", "epoch", "event", "facts"), (_row(event) for event in found))


def _all(run_id: str) -> Iterator[Event]:
    """Page by page: a run that loops for weeks has more events than one answer holds."""
    after = 0
    while page := celegraph.trace_run(run_id, after=after):
        yield from page
        after = page[-1].seq


def _safe(event: Event) -> dict[str, Any]:
    return {name: value for name, value in event.data.items() if name in _SHOWN}


def _row(event: Event) -> tuple[str, ...]:
    at = f"{event.at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]
    epoch = "" if event.epoch is None else str(event.epoch)
    return str(event.seq), at, epoch, event.kind, pairs(_safe(event))
