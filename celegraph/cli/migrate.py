"""`celegraph migrate`: make the tables, or bring them up to date."""

from __future__ import annotations

from celegraph.agent import migrate as tables
from celegraph.cli.options import Settings, command
from celegraph.cli.shown import say, say_json


@command("migrate")
def migrate(settings: Settings) -> None:
    """Make celegraph's and LangGraph's tables, or bring them up to date.

    Safe to run from many deploys at once, and when nothing is to do.  Loses no data.
    """
    config = settings.config()
    report = tables.migrate(config.database_url, config.schema_name)
    if settings.json:
        say_json({"schema": config.schema_name, "version": report.version, "applied": report.applied})
        return
    done = f"applied {', '.join(map(str, report.applied))}" if report.applied else "nothing to do"
    say(f"schema {config.schema_name!r} is at version {report.version} ({done})")
