"""`celegraph resolve KEY ANSWER`: did the effect in doubt happen?"""

from __future__ import annotations

from typing import cast

import click

import celegraph
from celegraph.cli.options import Settings, command
from celegraph.cli.shown import say, say_json
from celegraph.tasks.resolve import ANSWERS, Answer


@command("resolve")
@click.argument("key")
@click.argument("answer", type=click.Choice(ANSWERS))
@click.option("--by", required=True, help="Who has looked at the provider's side.")
@click.option("--ref", help="With happened: the provider's reference of the act.")
@click.option("--note", help="Why, for the record.")
def resolve(settings: Settings, key: str, answer: str, by: str, ref: str | None, note: str | None) -> None:
    """Settle an effect in doubt, after looking at the provider's side.

    happened: it is never called again.  did_not_happen: it is called again.  skip: it is not called,
    and the agent is told.
    """
    settings.install()
    effect = celegraph.resolve_effect(key, cast("Answer", answer), by=by, ref=ref, note=note)
    if settings.json:
        say_json({"key": key, "tool": effect.tool, "run_id": effect.run_id, "status": effect.status})
    else:
        goes = "has ended" if celegraph.get_run(effect.run_id).terminal else "goes on"
        say(f"effect {effect.tool!r} ({key}) is {effect.status}; run {effect.run_id} {goes}")
