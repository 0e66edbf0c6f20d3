"""`celegraph release-effect KEY`: an enqueued effect that has failed too often is tried again."""

from __future__ import annotations

import click

import celegraph
from celegraph.cli.options import Settings, command
from celegraph.cli.shown import say, say_json


@command("release-effect")
@click.argument("key")
@click.option("--by", required=True, help="Who wants it, for the record.")
def release_effect(settings: Settings, key: str, by: str) -> None:
    """Let a dead letter of the outbox be tried again: an enqueued effect that was refused eight times."""
    settings.install()
    celegraph.release_effect(key, by=by)
    effect = celegraph.get_effect(key)
    if settings.json:
        say_json({"key": key, "tool": effect.tool, "run_id": effect.run_id, "status": effect.status})
    else:
        say(f"effect {effect.tool!r} ({key}) of run {effect.run_id} is tried again")
