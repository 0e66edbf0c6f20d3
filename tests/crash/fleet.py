"""What every soak needs: workers whose processes are killed, the clock beside them, and the servers."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from celegraph.agent.migrate import migrate
from celegraph.dev.servers import BROKER_VARIABLES, DATABASE_VARIABLES, LocalServers
from tests.crash.places import Place, Post
from tests.support.process import kill_and_await, parent_of
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.wire import Wire
from tests.support.workers import Worker

Say = Callable[[str], object]


class Fleet:
    """Prefork workers with two children each, the control worker and beat.  What the workers say to
    the database passes the wire, if there is one."""

    def __init__(self, scene: Scene, wire: Wire | None, workers: int):
        self.scene = scene
        self._wire = wire
        env = scene.env(database_url=None if wire is None else wire.url)
        self._workers = [
            scene.worker(f"w{number}", queues=[scene.config.queue], env=env, start=False)
            for number in range(1, workers + 1)
        ]

    def launch(self) -> None:
        """Start everything; returns when all are ready."""
        scene = self.scene
        control = scene.worker("control", queues=[scene.config.control_queue], concurrency=1, start=False)
        for worker in (*self._workers, control):
            worker.launch()
        scene.beat()
        control.await_ready()
        self.await_whole()

    def await_whole(self) -> None:
        """Wait until all workers are up with both their children."""
        for worker in self._workers:
            worker.await_ready()
        eventually(lambda: all(len(worker.children()) == 2 for worker in self._workers), within=60)

    def children(self) -> list[int]:
        """The processes that run agents."""
        return [pid for worker in self._workers for pid in worker.children()]

    def post(self, place: Place, run_id: str) -> Post:
        """Wait for this run's process at this place, on the wire."""
        assert self._wire is not None
        return Post(place, self.scene, self._wire, run_id, self.children)

    def kill(self, pid: int) -> None:
        """SIGKILL to one child."""
        kill_and_await(pid)

    def kill_whole(self, pid: int) -> Worker:
        """SIGKILL to the main process of this child; both children end at once.  Returns the worker."""
        victim = self._worker_of(pid)
        victim.kill_main()
        return victim

    def kill_group(self, pid: int) -> Worker:
        """SIGKILL to the whole process group of this child's worker.  Returns the worker."""
        victim = self._worker_of(pid)
        victim.kill()
        return victim

    def _worker_of(self, pid: int) -> Worker:
        return next(worker for worker in self._workers if worker.pid == parent_of(pid))


class Verdict(Protocol):
    """What a soak has found; its text is the last line."""

    @property
    def good(self) -> bool:
        """Everything is as promised."""
        ...


def run_soak(
    told: str | None,
    soak: Callable[[Scene, Wire, int, int, Say], Verdict],
    *,
    settings: Mapping[str, str],
    agents: Mapping[str, str] | None = None,
) -> int:
    """Servers of its own that keep what they acknowledge, soak, verdict; the exit status."""
    parser = argparse.ArgumentParser(description=told)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="celegraph-soak-")))
        servers = own_servers(stack)
        migrate(servers.database_url)
        wire = stack.enter_context(Wire(servers.database_url))
        scene = stack.enter_context(
            Scene(servers.database_url, servers.broker_url, directory, settings=settings, agents=agents)
        )
        verdict = soak(scene, wire, options.kills, options.seed, say)
    say(str(verdict))
    return 0 if verdict.good else 1


def say(line: str) -> None:
    """A line for whoever watches."""
    # Whoever watched may have gone; the soak goes on.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def own_servers(stack: ExitStack, *, fsync: bool = True) -> LocalServers:
    """A PostgreSQL and a Valkey for the stack's length."""
    # Never the environment's: it might be somebody's real database.
    for name in (*DATABASE_VARIABLES, *BROKER_VARIABLES):
        os.environ.pop(name, None)
    return stack.enter_context(LocalServers(temporary=True, fsync=fsync))
