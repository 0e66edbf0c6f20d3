"""`celegraph dev`: the demo's servers and workers left running, with Flower, to play with."""

from __future__ import annotations

import secrets
import shlex
import time
from pathlib import Path

import click
from rich.console import Console

from celegraph.cli.example import find_example, require
from celegraph.cli.stage import Stage
from celegraph.dev.home import private_file
from celegraph.dev.server import free_port
from celegraph.errors import CelegraphError

_LOOK_EVERY = 0.5
_FLOWER_USER = "celegraph"


@click.command()
def dev() -> None:
    """Run the support agent's servers and workers until Ctrl-C; data is kept for the next time."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        example = find_example()
        require("aiosmtpd", "flower")
        with Stage(example, temporary=False) as stage:
            _open(stage, console)
            _watch(stage, console)
    except CelegraphError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        console.print("stopped; the data is kept, `make clean` removes it")


def _open(stage: Stage, console: Console) -> None:
    console.print("starting PostgreSQL, Valkey, an SMTP server, workers, beat and Flower ...")
    stage.open_servers()
    stage.prepare_database()
    stage.start_workers()
    flower = _start_flower(stage)
    stage.await_workers()
    variables = _write_variables(stage)
    console.print(
        f"\n  PostgreSQL  {stage.servers.database_url}"
        f"\n  Valkey      {stage.servers.broker_url}"
        f"\n  SMTP        {stage.smtp.url}, every accepted mail is a line in {stage.smtp.log}"
        f"\n  Flower      {flower}"
        f"\n  logs        {stage.home.path}/*/log"
        "\n\nNext, in a second terminal:\n"
        f"\n  cd {_root(stage)} && set -a && . {shlex.quote(str(variables))} && PATH=$PWD/.venv/bin:$PATH"
        "\n  python -m examples.support T-05 && sleep 1 && celegraph approvals"
        "\n  celegraph decide APPROVAL approve --by me && celegraph runs"
        "\n\nCtrl-C stops everything."
    )


def _start_flower(stage: Stage) -> str:
    """Flower for this machine and this password only; returns what a person needs to open it."""
    port, password = free_port(), secrets.token_urlsafe(12)
    # In a file: command lines are readable by every user of the machine.
    settings = stage.directory("flower") / "flowerconfig.py"
    text = f"from celegraph.contrib.flower import *\nbasic_auth = ['{_FLOWER_USER}:{password}']\n"
    private_file(settings, text, None)
    flower = stage.celery("flower", "flower", "--address=127.0.0.1", f"--port={port}", f"--conf={settings}")
    flower.await_log("Visit me at")
    return f"http://127.0.0.1:{port}  user {_FLOWER_USER}, password {password}"


def _write_variables(stage: Stage) -> Path:
    """What a second terminal must know, readable by this user alone."""
    path = stage.home.path / "env"
    lines = [f"{name}={shlex.quote(value)}\n" for name, value in stage.variables().items()]
    private_file(path, "".join(lines), None)
    return path


def _root(stage: Stage) -> str:
    return shlex.quote(str(stage.example.root))


def _watch(stage: Stage, console: Console) -> None:
    """Until Ctrl-C; says so when something has ended by itself."""
    ended = set[str]()
    while True:
        for name, process in stage.processes.items():
            if process.pid is None and name not in ended:
                ended.add(name)
                console.print(f"{name} has ended; its log is {process.log}")
        time.sleep(_LOOK_EVERY)
