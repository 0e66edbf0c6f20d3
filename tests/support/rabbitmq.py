"""A real RabbitMQ node of the test's own, to stop, to freeze and to start again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import amqp
import pytest

from tests.support.process import ROOT, Process
from tests.support.waiting import eventually

# What a host says to have quorum queues (docs/operations.md).
QUORUM: dict[str, object] = {
    "task_default_queue_type": "quorum",
    "broker_transport_options": {"confirm_publish": True},
}


@contextmanager
def rabbitmq(home: Path) -> Iterator[RabbitMQ]:
    """A running node; the test is skipped where RabbitMQ is missing.

    Not in CI, whose script installs it: there a missing one is a failure.
    """
    if not shutil.which("rabbitmq-server", path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        if os.environ.get("CI"):
            pytest.fail("no rabbitmq-server: apt-get install rabbitmq-server, as .ci/run does")
        pytest.skip("no rabbitmq-server on this machine: apt-get install rabbitmq-server")
    with RabbitMQ(home) as node:
        yield node


class RabbitMQ(Process):
    """Keeps data, port and password between starts."""

    def __init__(self, home: Path):
        self._home = home
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        super().__init__(
            "rabbitmq", ["-m", "tests.support.rabbitmq_node", str(home)], log=home / "node.log", env=env
        )

    @property
    def _facts(self) -> dict[str, str]:
        path = self._home / "node.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    @property
    def url(self) -> str:
        """Where clients connect, password included.  The same after a restart."""
        facts = self._facts
        return f"amqp://celegraph:{facts['password']}@127.0.0.1:{facts['port']}//"

    def is_ready(self) -> bool:
        """It takes clients: only our node knows the password."""
        facts = self._facts
        try:
            self._connect(str(facts["port"]), facts["password"]).close()
        except (KeyError, ValueError, OSError, amqp.AMQPError):  # not listening yet
            return False
        return True

    def stop(self) -> None:
        """An orderly end, awaited."""
        self.send(signal.SIGTERM)
        self.wait()

    def restart(self) -> None:
        """An orderly end and a new start."""
        self.stop()
        self.start()

    def queues(self, *names: str) -> dict[str, int | None]:
        """How many messages are ready in each; None where there is no such queue."""
        return {name: self._depth(name) for name in names}

    def _depth(self, name: str) -> int | None:
        with self.client() as client:
            try:
                found = client.channel().queue_declare(name, passive=True)
            except amqp.NotFound:
                return None
        assert found is not None
        return int(found[1])

    def is_quorum(self, name: str) -> bool:
        """The queue exists, and declaring it as a quorum queue changes nothing."""
        with self.client() as client:
            try:
                client.channel().queue_declare(
                    name, durable=True, auto_delete=False, arguments={"x-queue-type": "quorum"}
                )
            except amqp.PreconditionFailed:
                return False
        return True

    def purge(self, name: str) -> int:
        """Throw away what is ready in the queue; how many messages that was."""
        with self.client() as client:
            return int(client.channel().queue_purge(name) or 0)

    def delete(self, *names: str) -> None:
        """Remove these queues."""
        with self.client() as client:
            for name in names:
                client.channel().queue_delete(name)

    def drop_connections(self) -> None:
        """The broker closes every client's connection."""
        facts = self._facts
        control = ["/usr/lib/rabbitmq/bin/rabbitmqctl", "-n", f"{facts['name']}@localhost"]
        subprocess.run(
            [*control, "close_all_connections", "the test says so"],
            env={**os.environ, "HOME": str(self._home), "ERL_EPMD_PORT": str(facts["epmd"])},
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )

    @contextmanager
    def client(self) -> Iterator[amqp.Connection]:
        """A connection of the test's own."""
        facts = self._facts
        connection = self._connect(str(facts["port"]), facts["password"])
        try:
            yield connection
        finally:
            connection.close()

    @staticmethod
    def _connect(port: str, password: str) -> amqp.Connection:
        connection = amqp.Connection(
            f"127.0.0.1:{port}", "celegraph", password, connect_timeout=2, read_timeout=10
        )
        connection.connect()
        return connection


def await_empty(node: RabbitMQ, *names: str) -> None:
    """Wait until nothing is ready in these queues."""
    eventually(lambda: not any(node.queues(*names).values()))
