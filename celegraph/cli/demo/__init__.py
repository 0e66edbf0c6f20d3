"""`celegraph demo`: a support agent under kill -9, live in the terminal."""

from __future__ import annotations

import secrets

import click
from rich.console import Console

from celegraph.cli.example import AGENT, Example, ExampleMissing, find_example, require
from celegraph.cli.stage import Stage
from celegraph.errors import CelegraphError

_FEWEST = 3  # one run for each kind of kill


@click.command()
@click.option("--runs", type=click.IntRange(_FEWEST, 29), default=16, show_default=True, help="Tickets.")
def demo(runs: int) -> None:
    """Answer tickets while workers are killed, then count what the mail server accepted.

    Starts its own PostgreSQL, Valkey, SMTP server, workers and beat, and leaves nothing behind.
    """
    console = Console(highlight=False)
    try:
        example = find_example()
        require("aiosmtpd")
    except ExampleMissing as missing:
        raise click.ClickException(str(missing)) from missing
    try:
        last_line, ok = _run(example, runs, console)
    except CelegraphError as error:
        last_line, ok = f"DEMO FAILED ({' '.join(str(error).split())})", False
    click.echo(last_line)
    raise SystemExit(0 if ok else 1)


def _run(example: Example, count: int, console: Console) -> tuple[str, bool]:
    # Here: a command line that only lists its commands must not pay for LangGraph.
    from celegraph.cli.demo.play import Play, doomed
    from celegraph.cli.demo.report import Report
    from celegraph.cli.demo.screen import Screen
    from celegraph.cli.demo.story import Ledger
    from celegraph.tasks.installation import installation

    # The database may be one that the environment names, with the runs of an earlier demo in it.
    series = secrets.token_hex(2)
    tickets = {f"{series}-{ticket['ticket_id']}": ticket for ticket in example.tickets()[:count]}
    subjects = {run_id: ticket["subject"] for run_id, ticket in tickets.items()}
    with Screen(console, subjects) as screen, Stage(example, temporary=True) as stage:
        screen.say("starting PostgreSQL, Valkey and an SMTP server")
        stage.open_servers()
        passages = stage.prepare_database()
        screen.say(f"migrated; indexed {passages} passages of the documentation")
        example.install()
        stage.start_workers()
        stage.await_workers()
        screen.say("two workers, a control worker and beat are up")
        play = Play(stage, Ledger(installation().config, list(tickets)), screen, tickets, AGENT)
        report = Report(play.perform(), stage.smtp.deliveries(), count)
        if report.problem:
            console.print(*doomed(play), *(p.tail() for p in stage.processes.values()), sep="\n")
    console.print(report.table())
    return report.last_line(), not report.problem
