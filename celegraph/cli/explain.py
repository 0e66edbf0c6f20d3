"""`celegraph explain RUN`: why it does not move, in one sentence."""

from __future__ import annotations

from dataclasses import asdict

import click

import celegraph
from celegraph.cli.options import Settings, command
from celegraph.cli.shown import say, say_json


@command("explain")
@click.argument("run_id", metavar="RUN")
def explain(settings: Settings, run_id: str) -> None:
    """Say in one sentence what a run does, or why it does not move."""
    settings.install()
    explanation = celegraph.explain_run(run_id)
    if settings.json:
        say_json(asdict(explanation))
    else:
        say(explanation.sentence)
