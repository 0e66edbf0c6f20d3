"""Runs `celegraph demo` and `celegraph dev` as a person would, and sees what they leave behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from celegraph.dev.stray import command_of
from tests.support.waiting import eventually

REPOSITORY = Path(__file__).resolve().parents[2]
_URLS = ("CELEGRAPH_DATABASE_URL", "DATABASE_URL", "CELERY_BROKER_URL")


class Staged:
    """A running `celegraph` command and the directories that its guards name."""

    def __init__(self, process: subprocess.Popen[str]):
        self.process = process
        self.directories: set[str] = set()

    def say_until(self, text: str) -> list[str]:
        """Its output up to the line with `text`."""
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line.rstrip("\n"))
            if text in line:
                self.look()
                return said
        raise AssertionError("\n".join(said))

    def look(self) -> None:
        """Remember what it has started so far."""
        mine = f'"parent": {self.process.pid}'
        for command in commands():
            if mine in command:
                self.directories |= set(re.findall(r'"directory": "([^"]+)"', command))

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    @property
    def homes(self) -> set[Path]:
        """Where its directories lie."""
        return {Path(directory).parent for directory in self.directories}

    def processes(self) -> list[str]:
        """Everything it has started that still runs."""
        return [c for c in commands() if any(directory in c for directory in self.directories)]

    def leftovers(self) -> list[str]:
        """Processes and directories of it that are there."""
        return self.processes() + [str(home) for home in self.homes if home.exists()]


@contextmanager
def staged(*arguments: str, module: str = "celegraph", cwd: Path = REPOSITORY) -> Iterator[Staged]:
    """`python -m MODULE ARGUMENTS`; killed with everything it has started if the test fails."""
    environment = {key: value for key, value in os.environ.items() if key not in _URLS}
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=cwd,
        env=environment | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A suite in the background of a shell has SIGINT ignored, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )
    made = Staged(process)
    try:
        yield made
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        eventually(lambda: not made.processes(), within=40)


def commands() -> list[str]:
    """The command lines of all processes of this machine."""
    if Path("/proc/self/cmdline").exists():
        return [command_of(int(path.name)) for path in Path("/proc").glob("[0-9]*")]
    told = subprocess.run(["ps", "-axww", "-o", "command="], capture_output=True, text=True, check=True)
    return told.stdout.splitlines()
