"""What every command understands, before or after its name: which database, which app, which output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from celegraph.errors import ConfigError, NotInstalled

if TYPE_CHECKING:
    from celegraph.config import Config
    from celegraph.tasks.installation import Installation

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Settings:
    """The global options as they came in; the one given last (after the command) counts."""

    app: str | None = None
    database_url: str | None = None
    schema: str | None = None
    json: bool = False

    def install(self) -> Installation:
        """Let the helpers work on the app's celegraph, or on one that knows only the database.

        Until the command ends.
        """
        from celegraph.tasks.installation import ledger_only, using

        # Agents and settings lie where the command is typed, as for `celery -A`.
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        inst = _of_app(self.app) if self.app else ledger_only()
        given = {"database_url": self.database_url, "schema": self.schema}
        inst.override(**{name: value for name, value in given.items() if value})
        click.get_current_context().with_resource(using(inst))
        return inst

    def config(self) -> Config:
        """The configuration that the options and the app come to; ConfigError says what is missing."""
        return self.install().config


def _of_app(name: str) -> Installation:
    from celery.app.utils import find_app

    from celegraph.tasks.installation import find

    try:
        app = find_app(name)
        # What a worker does before it starts; it also sets Django up, which may hold the database's URL.
        app.loader.import_default_modules()
    except Exception as error:
        raise ConfigError(f"--app {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    inst = find(app)
    if inst is None:
        raise NotInstalled(
            f"the Celery app {name!r} has no celegraph; next to `app = Celery(...)` add"
            ' celegraph.install(app, agents={"name": "package.module:graph"})'
        )
    return inst


def global_options(*, from_environment: bool = False) -> Callable[[F], F]:
    """--app, --database-url, --schema and --json; kept in `Settings`, not passed to the command.

    Only the group reads the environment: a command's variable must not win over the group's option.
    """
    variable = "CELEGRAPH_APP" if from_environment else None
    options = (
        click.option("-A", "--app", envvar=variable, **_kept("The Celery app, as for `celery -A`.")),
        click.option("--database-url", **_kept("The PostgreSQL that holds the runs.")),
        click.option("--schema", **_kept("The schema of the tables (default: celegraph).")),
        click.option("--json", is_flag=True, **_kept("Print JSON.")),
    )

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _kept(help: str) -> dict[str, Any]:
    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value:
            setattr(ctx.ensure_object(Settings), str(param.name), value)

    return {"help": help, "expose_value": False, "callback": keep}


def command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A command with the global options, which gets the `Settings` as its first argument."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        takes_settings = click.make_pass_decorator(Settings, ensure=True)(function)
        return click.command(name)(global_options()(takes_settings))

    return decorate
