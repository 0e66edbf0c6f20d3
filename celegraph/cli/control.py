"""`celegraph cancel | pause | resume | retry | release RUN`: what people do to whole runs."""

from __future__ import annotations

import click

import celegraph
from celegraph.cli.options import Settings, command
from celegraph.cli.shown import say, say_json


@command("cancel")
@click.argument("run_id", metavar="RUN")
@click.option("--reason", default="cancelled on request", show_default=True)
def cancel(settings: Settings, run_id: str, reason: str) -> None:
    """End a run for good; a running one stops at its next step."""
    settings.install()
    status = celegraph.cancel_run(run_id, reason=reason)
    ends = "is cancelled" if status == "cancelled" else "stops at its next step"
    _report(settings, run_id, status, ends)


@command("pause")
@click.argument("run_id", metavar="RUN")
@click.option("--reason", default="paused", show_default=True)
def pause(settings: Settings, run_id: str, reason: str) -> None:
    """Hold a run until it is resumed; a running one stops at its next step."""
    settings.install()
    status = celegraph.pause_run(run_id, reason=reason)
    held = "is paused" if status == "paused" else "is paused at its next step"
    _report(settings, run_id, status, held)


@command("resume")
@click.argument("run_id", metavar="RUN")
@click.option("--by", help="Who wants it, for the record.")
def resume(settings: Settings, run_id: str, by: str | None) -> None:
    """Let a paused run go on."""
    settings.install()
    status = celegraph.resume_run(run_id, by=by)
    _report(settings, run_id, status, f"is {status} and goes on")


@command("retry")
@click.argument("run_id", metavar="RUN")
@click.option("--by", help="Who wants it, for the record.")
def retry(settings: Settings, run_id: str, by: str | None) -> None:
    """Let a failed run go on from its last durable step."""
    settings.install()
    celegraph.retry_run(run_id, by=by)
    _report(settings, run_id, "ready", "is ready and goes on from its last durable step")


@command("release")
@click.argument("run_id", metavar="RUN")
@click.option("--by", help="Who wants it, for the record.")
def release(settings: Settings, run_id: str, by: str | None) -> None:
    """Let a quarantined run go on, with its crashes forgiven."""
    settings.install()
    celegraph.release_run(run_id, by=by)
    _report(settings, run_id, "ready", "is ready, its crashes are forgiven")


def _report(settings: Settings, run_id: str, status: str, words: str) -> None:
    if settings.json:
        say_json({"run_id": run_id, "status": status})
    else:
        say(f"run {run_id} {words}")
