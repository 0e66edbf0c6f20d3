"""The `celegraph` command: finds its commands when they are called, and prints errors as one line."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from celegraph.cli.options import Settings, global_options
from celegraph.cli.shown import say_error
from celegraph.errors import CelegraphError

# Imported when called: `celegraph migrate` must not pay for what `celegraph demo` needs.
_COMMANDS = {
    "demo": "celegraph.cli.demo:demo",
    "dev": "celegraph.cli.dev:dev",
    "migrate": "celegraph.cli.migrate:migrate",
    "doctor": "celegraph.cli.doctor:doctor",
    "runs": "celegraph.cli.runs:runs",
    "trace": "celegraph.cli.trace:trace",
    "explain": "celegraph.cli.explain:explain",
    "approvals": "celegraph.cli.approvals:approvals",
    "decide": "celegraph.cli.decide:decide",
    "effects": "celegraph.cli.effects:effects",
    "resolve": "celegraph.cli.resolve:resolve",
    "release-effect": "celegraph.cli.release_effect:release_effect",
    "cancel": "celegraph.cli.control:cancel",
    "pause": "celegraph.cli.control:pause",
    "resume": "celegraph.cli.control:resume",
    "retry": "celegraph.cli.control:retry",
    "release": "celegraph.cli.control:release",
    "prune": "celegraph.cli.prune:prune",
}


class Commands(click.Group):
    """Commands by import path, in the order a newcomer meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name].partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            return None  # this installation comes without it
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Errors we know are one line and exit status 1; everything else keeps its traceback."""
        settings = ctx.ensure_object(Settings)
        try:
            return super().invoke(ctx)
        except CelegraphError as error:
            say_error(settings, str(error))
        except BrokenPipeError:
            # `celegraph trace RUN | head`: the reader has what it wanted.  Python would complain again
            # when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except Exception as error:
            if (words := _database_words(error)) is None:
                raise
            say_error(settings, words)
        ctx.exit(1)


def _database_words(error: Exception) -> str | None:
    from celegraph.ledger.db_errors import in_words

    return in_words(error)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@global_options(from_environment=True)
@click.version_option(package_name="celegraph")
def main() -> None:
    """Durable LangGraph agents on Celery: look at runs, answer questions, put things right.

    The database is --database-url, else the app's configuration, else CELEGRAPH_DATABASE_URL.
    """
