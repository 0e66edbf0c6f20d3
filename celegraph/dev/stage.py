"""What examples play on: local servers, a real SMTP server, and Celery processes that end with this one.

Everything stands by itself in a session of its own and ends with this process; leaving the block ends it in
order.
"""

from __future__ import annotations

import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from celegraph.dev.home import Home
from celegraph.dev.kept import KeptProcess, passing_directory
from celegraph.dev.mailbox import SmtpServer, start_smtp
from celegraph.dev.servers import LocalServers


class LocalStage(ABC):
    """`app`: for `celery -A`, importable from `root`."""

    def __init__(self, app: str, root: Path, *, home: Home, servers: LocalServers):
        self.home = home
        self.servers = servers
        self.processes: dict[str, KeptProcess] = {}
        self._app = app
        self._root = root
        self._stack = ExitStack()
        self._smtp: SmtpServer | None = None

    def __enter__(self) -> Self:
        # The stack runs backwards: the home goes last, the processes before what they are connected to.
        if self.home.temporary:
            self._stack.callback(self.home.remove)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.send(signal.SIGTERM)  # all at once; closing then waits for each
        self._stack.close()

    @abstractmethod
    def variables(self) -> dict[str, str]:
        """What the processes read from their environment, once the servers are open."""

    @property
    def smtp(self) -> SmtpServer:
        """The local SMTP server, once it is open; its log alone says what was delivered."""
        assert self._smtp is not None
        return self._smtp

    @property
    def environment(self) -> dict[str, str]:
        """What the processes, and a second terminal, find in theirs."""
        path = os.pathsep.join(filter(None, [str(self._root), os.environ.get("PYTHONPATH")]))
        # A Django developer's shell names a project, and Celery would set that up in our workers.
        mine = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        return {**mine, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **self.variables()}

    def open_servers(self) -> None:
        """PostgreSQL, broker and SMTP."""
        mail, keeper = passing_directory(self.home, "mail")
        self._stack.callback(keeper.close)
        self._stack.enter_context(self.servers)
        self._smtp = start_smtp(mail)
        self._stack.callback(self._smtp.stop)

    def celery(self, name: str, *command: str) -> KeptProcess:
        """Start `celery -A APP COMMAND` under this name."""
        return self.start(name, ["-m", "celery", "-A", self._app, *command])

    def start_beat(self) -> None:
        """One beat, with its schedule in its own directory."""
        schedule = self.directory("beat") / "schedule"
        self.celery("beat", "beat", "--pidfile=", "--schedule", str(schedule))

    def start(self, name: str, arguments: Sequence[str]) -> KeptProcess:
        """Start Python with these arguments under this name."""
        process = self.process(name)
        process.start(arguments, self.environment)
        return process

    def directory(self, name: str) -> Path:
        """A process's own directory."""
        return self.process(name).directory

    def process(self, name: str) -> KeptProcess:
        """The process of this name, started or not."""
        if name not in self.processes:
            self.processes[name] = KeptProcess(self.home, name)
            self._stack.callback(self.processes[name].close)
        return self.processes[name]
