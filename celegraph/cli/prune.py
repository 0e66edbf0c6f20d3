"""`celegraph prune`: remove what ended runs have outlived, now and to the end."""

from __future__ import annotations

from datetime import timedelta

import click

from celegraph.cli.options import Settings, command
from celegraph.cli.shown import say, say_json
from celegraph.config import parse_duration
from celegraph.errors import ConfigError
from celegraph.ledger.pool import ledger
from celegraph.ledger.prune import PruneReport, prune_once


class _Duration(click.ParamType[timedelta]):
    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@command("prune")
@click.option(
    "--checkpoints", type=_Duration(), help="Keep them so long after a run's end; else `retention`."
)
@click.option(
    "--events", type=_Duration(), help="Keep them so long after a run's end; else `event_retention`."
)
def prune(settings: Settings, checkpoints: timedelta | None, events: timedelta | None) -> None:
    """Remove superseded checkpoints and old events of ended runs.

    Runs that are not over, effects, questions and the runs themselves stay.  May be stopped and run again.
    """
    config = settings.config()
    keep = checkpoints if checkpoints is not None else config.retention
    keep_events = events if events is not None else config.event_retention
    if keep is None and keep_events is None:
        raise ConfigError(
            "nothing says how long to keep what: give --checkpoints 30d or --events 90d, or set the options"
            " 'retention' and 'event_retention'"
        )
    total = PruneReport()
    more = True
    while more:
        with ledger(config) as conn:
            report = prune_once(conn, checkpoints=keep, events=keep_events)
        for name, count in report.counts().items():
            setattr(total, name, getattr(total, name) + count)
        more = report.more
    _report(settings, total)


def _report(settings: Settings, total: PruneReport) -> None:
    counts = {name: count for name, count in total.counts().items() if name != "more"}
    if settings.json:
        say_json(counts)
        return
    removed = ", ".join(f"{count} {name}" for name, count in counts.items() if name != "runs")
    say(f"pruned {counts['runs']} runs: removed {removed}")
