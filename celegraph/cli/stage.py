"""What `demo` and `dev` play on: the support example with the production commands of docs/operations.md."""

from __future__ import annotations

import os
from pathlib import Path

from celegraph.agent.migrate import migrate
from celegraph.cli.example import APP, Example
from celegraph.dev.home import Home
from celegraph.dev.servers import LocalServers
from celegraph.dev.stage import LocalStage

# The second worker is there so that a run whose worker was killed need not wait for that worker's restart.
_COMMANDS = {
    "worker": "worker -n one@%h -Q celery,celegraph --concurrency 2",
    "second": "worker -n two@%h -Q celery,celegraph --concurrency 2",
    "control": "worker -n control@%h -Q celegraph.control --concurrency 1",
}
WORKERS = ("worker", "second")


class Stage(LocalStage):
    """Servers and processes for the example; open it in steps, so that each can be told."""

    def __init__(self, example: Example, *, temporary: bool):
        home = Home.passing() if temporary else Home.of_working_directory()
        servers = LocalServers(fsync=True, temporary=temporary)
        super().__init__(APP, example.root, home=home, servers=servers)
        self.example = example

    def open_servers(self) -> None:
        """PostgreSQL, broker and SMTP; their URLs go into this process's environment too."""
        super().open_servers()
        os.environ.update(self.variables())

    def prepare_database(self) -> int:
        """Migrate, and index the documentation; returns the number of passages."""
        migrate(self.servers.database_url)
        return self.example.index_docs(self.servers.database_url)

    def start_workers(self) -> None:
        """Two workers for runs, one for the control queue, and beat."""
        for name, command in _COMMANDS.items():
            log = str(self.process(name).log)
            self.celery(name, *command.split(), "--loglevel", "INFO", "--logfile", log)
        self.start_beat()

    def await_workers(self) -> None:
        """Return when every worker takes messages."""
        for name in _COMMANDS:
            self.processes[name].await_log(" ready.")

    def variables(self) -> dict[str, str]:
        """What the example reads from its environment."""
        return {
            "CELEGRAPH_DATABASE_URL": self.servers.database_url,
            "CELERY_BROKER_URL": self.servers.broker_url,
            "SUPPORT_SMTP_URL": self.smtp.url,
            "SUPPORT_MAIL_LOG": str(Path(self.smtp.log)),
        }
