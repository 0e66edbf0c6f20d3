"""`celegraph doctor`: is everything there that runs need?  One line per check, with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import click
from rich.text import Text

from celegraph.cli import check_database, check_workers
from celegraph.cli.check import Check, State, error, ok, skipped
from celegraph.cli.options import Settings, command
from celegraph.cli.shown import say_json, say_table, visible
from celegraph.errors import CelegraphError
from celegraph.tasks.installation import Installation

_COLOURS: dict[State, str] = {"ok": "green", "warning": "yellow", "error": "bold red", "skipped": "dim"}


@command("doctor")
@click.pass_context
def doctor(ctx: click.Context, settings: Settings) -> None:
    """Check database, broker, queues, beat and agents; say what to do about each.

    Broker, queues and agents need --app.  Exit status 1 when there is an error.
    """
    found = list(_checks(settings))
    healthy = all(check.state != "error" for check in found)
    if settings.json:
        say_json({"ok": healthy, "checks": [asdict(check) for check in found]})
    else:
        say_table(("", "", "", "what to do"), (_row(check) for check in found))
    if not healthy:
        ctx.exit(1)


def _checks(settings: Settings) -> Iterator[Check]:
    try:
        inst = settings.install()
        config = inst.config
    except CelegraphError as problem:
        yield error("configuration", str(problem))
        return
    yield ok("configuration", f"schema {config.schema_name!r}, queues {config.queue}, {config.control_queue}")
    overdue = False
    for check in check_database.checks(config):
        overdue = overdue or (check.name == "backlog" and check.state != "ok")
        yield check
    if settings.app:
        yield from check_workers.checks(inst, overdue=overdue)
        yield from _agents(inst)
    else:
        yield skipped("broker, queues, agents", "give --app module:app, as for `celery -A`")


def _agents(inst: Installation) -> Iterator[Check]:
    """Every agent's graph, loaded as a worker loads it."""
    for name in inst.agents:
        try:
            inst.graph(name)
        except CelegraphError as problem:
            yield error("agent", str(problem), "a worker that cannot import it does not start")
        except Exception as problem:
            # The host's own module, which may raise anything.
            yield error(
                "agent",
                f"{name!r} fails on import: {type(problem).__name__}: {problem}",
                "correct its module",
            )
        else:
            yield ok("agent", f"{name!r} can be imported")


def _row(check: Check) -> tuple[str | Text, ...]:
    return Text(check.state, _COLOURS[check.state]), check.name, visible(check.says), check.remedy
