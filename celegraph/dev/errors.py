"""What can go wrong with the servers of a laptop."""

from __future__ import annotations

from pathlib import Path

from celegraph.errors import CelegraphError


class LocalServersError(CelegraphError):
    """A development server could not be had; the message names the remedy."""


class ServerNotFound(LocalServersError):
    """No URL in the environment, no wheel, nothing on the machine."""


class ServerFailed(LocalServersError):
    """The server was found but did not run; `log` is what it said last."""

    def __init__(self, name: str, problem: str, log: str = ""):
        said = f"\n{log.rstrip()}" if log.strip() else ""
        super().__init__(f"{name}: {problem}{said}")
        self.name = name
        self.problem = problem
        self.log = log


class HomeInUse(LocalServersError):
    """Another process runs its servers in this directory; both would damage the data."""

    def __init__(self, directory: Path, pid: str):
        super().__init__(
            f"{directory} is in use by process {pid or 'unknown'};"
            " stop that one first, or start this one in another directory"
        )
        self.directory = directory
        self.pid = pid
