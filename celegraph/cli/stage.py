"""What `demo` and `dev` play on: real servers, a real SMTP server, real Celery processes.

Everything stands by itself in a session of its own and ends with this process; `close` ends it in order.
"""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from celegraph.agent.migrate import migrate
from celegraph.cli.example import APP, Example
from celegraph.dev.home import Home
from celegraph.dev.kept import KeptProcess, passing_directory
from celegraph.dev.mailbox import SmtpServer, start_smtp
from celegraph.dev.servers import LocalServers

# The production commands of docs/operations.md; the second worker is there so that a run whose worker
# was killed need not wait for that worker's restart.
_COMMANDS = {
    "worker": "worker -n one@%h -Q celery,celegraph --concurrency 2",
    "second": "worker -n two@%h -Q celery,celegraph --concurrency 2",
    "control": "worker -n control@%h -Q celegraph.control --concurrency 1",
}
WORKERS = ("worker", "second")


class Stage:
    """Servers and processes for the example; open it in steps, so that each can be told."""

    def __init__(self, example: Example, *, temporary: bool):
        self.example = example
        self._stack = ExitStack()
        self.servers = LocalServers(fsync=True, temporary=temporary)
        self.home = Home.passing() if temporary else Home.of_working_directory()
        self.processes: dict[str, KeptProcess] = {}
        self._smtp: SmtpServer | None = None

    def __enter__(self) -> Self:
        # The stack runs backwards: the home goes last, the workers before what they are connected to.
        self._stack.callback(self._forget_home)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.send(signal.SIGTERM)  # all at once; closing then waits for each
        self._stack.close()

    @property
    def smtp(self) -> SmtpServer:
        """The local SMTP server, once it is open."""
        assert self._smtp is not None
        return self._smtp

    def open_servers(self) -> None:
        """PostgreSQL, broker and SMTP; their URLs go into this process's environment too."""
        mail, keeper = passing_directory(self.home, "mail")
        self._stack.callback(keeper.close)
        self._stack.enter_context(self.servers)
        self._smtp = start_smtp(mail)
        self._stack.callback(self._smtp.stop)
        os.environ.update(self.variables())

    def prepare_database(self) -> int:
        """Migrate, and index the documentation; returns the number of passages."""
        migrate(self.servers.database_url)
        return self.example.index_docs(self.servers.database_url)

    def start_workers(self) -> None:
        """Two workers for runs, one for the control queue, and beat."""
        for name, command in _COMMANDS.items():
            log = str(self._process(name).log)
            self.celery(name, *command.split(), "--loglevel", "INFO", "--logfile", log)
        schedule = self.directory("beat") / "schedule"
        self.celery("beat", "beat", "--pidfile=", "--schedule", str(schedule))

    def await_workers(self) -> None:
        """Return when every worker takes messages."""
        for name in _COMMANDS:
            self.processes[name].await_log(" ready.")

    def directory(self, name: str) -> Path:
        """A process's own directory."""
        return self._process(name).directory

    def celery(self, name: str, *command: str) -> KeptProcess:
        """Start `celery -A examples.support.app COMMAND` under this name."""
        process = self._process(name)
        process.start(["-m", "celery", "-A", APP, *command], self._environment())
        return process

    def _process(self, name: str) -> KeptProcess:
        if name not in self.processes:
            self.processes[name] = KeptProcess(self.home, name)
            self._stack.callback(self.processes[name].close)
        return self.processes[name]

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(self.example.root), os.environ.get("PYTHONPATH")]))
        # A Django developer's shell names a project, and Celery would set that up in our workers.
        mine = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        return {**mine, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}

    def variables(self) -> dict[str, str]:
        """What the example reads from its environment."""
        return {
            "CELEGRAPH_DATABASE_URL": self.servers.database_url,
            "CELERY_BROKER_URL": self.servers.broker_url,
            "SUPPORT_SMTP_URL": self.smtp.url,
            "SUPPORT_MAIL_LOG": str(Path(self.smtp.log)),
        }

    def _forget_home(self) -> None:
        if self.home.temporary:
            self.home.remove()
