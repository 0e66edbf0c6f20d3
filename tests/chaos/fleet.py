"""The processes that are struck: run workers, the control worker, beat, and both servers."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import threading
from dataclasses import dataclass
from typing import Any

from celegraph.dev.server import LocalServer
from celegraph.dev.servers import LocalServers
from tests.support import skewed
from tests.support.aiming import aims
from tests.support.process import Process, is_dead, state_of
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.workers import Beat, Worker


@dataclass(frozen=True)
class _Kind:
    """How a run worker is started; `clock`: by so many seconds its host's clock is wrong."""

    pool: str = "prefork"
    clock: int = 0
    options: tuple[str, ...] = ()

    def of(self, scene: Scene, name: str, queues: list[str]) -> Worker:
        """A worker of this kind, not started yet."""
        how: dict[str, Any] = {"pool": self.pool, "queues": queues, "options": self.options}
        if self.clock:
            how |= {"app": skewed.APP, "env": scene.env() | skewed.clock_off_by(self.clock)}
        return scene.worker(name, start=False, **how)


# The second drains what takes long and kills what takes too long; it and the third are twenty minutes apart.
_KINDS = (
    _Kind(),
    _Kind(clock=600, options=("--soft-time-limit", "6", "--time-limit", "12")),
    _Kind(pool="threads", clock=-600),
)


class Fleet:
    """Everything that runs, and what brings it back."""

    def __init__(self, scene: Scene, servers: LocalServers, *, workers: int):
        self.scene = scene
        self.servers = servers
        queue, control = [scene.config.queue], [scene.config.control_queue]
        kinds = itertools.islice(itertools.cycle(_KINDS), workers)
        self.workers: list[Worker] = [
            kind.of(scene, f"w{number}", queue) for number, kind in enumerate(kinds, start=1)
        ]
        self.control = scene.worker("control", queues=control, concurrency=1, start=False)
        self.beat = Beat("beat", directory=scene.directory, env=scene.env())
        self.second_beat = Beat("second-beat", directory=scene.directory, env=scene.env())
        self._stopped: set[int] = set()
        # A server is for one thread at a time: that of its start, while there is one.
        self._starting: dict[str, threading.Thread] = {}

    def launch(self) -> None:
        """Start all; returns when all are ready."""
        for process in self.all:
            process.launch()
        for process in self.all:
            process.await_ready()

    @property
    def all(self) -> list[Process]:
        """What must run when everything is healthy."""
        return [*self.workers, self.control, self.beat]

    def end(self) -> None:
        """Kill what the scene does not."""
        for beat in (self.beat, self.second_beat):
            beat.kill()

    def stop(self, pids: list[int]) -> None:
        """SIGSTOP; never in the instant between a claim's last check and the call's first byte."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                self._stop(pid)

    def _stop(self, pid: int) -> None:
        def stands_still_well() -> bool:
            os.kill(pid, signal.SIGSTOP)
            eventually(lambda: state_of(pid) == "T" or is_dead(pid))
            if not aims(self.scene.directory, pid):
                return True
            os.kill(pid, signal.SIGCONT)
            return False

        self._stopped.add(pid)
        try:
            eventually(stands_still_well)
        except AssertionError:
            self.go_on([pid])

    def go_on(self, pids: list[int]) -> None:
        """SIGCONT to those that we have stopped."""
        for pid in pids:
            if pid in self._stopped:
                self._stopped.discard(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def bring_back(self, process: Process) -> None:
        """Start it again if it has ended; what is left of it is ended first."""
        if not process.running:
            process.kill()
            process.launch()

    def start_server(self, server: LocalServer) -> None:
        """Start it beside everything else: recovery takes its time, and the faults go on."""
        starting = threading.Thread(target=server.start, name=f"start of {server.name}")
        starting.start()
        self._starting[server.name] = starting

    def is_up(self, server: LocalServer) -> bool:
        """It runs, and nobody is starting it just now."""
        starting = self._starting.get(server.name)
        return not (starting is not None and starting.is_alive()) and server.running

    def heal(self) -> None:
        """Everything runs as it should; returns when it is ready."""
        self.go_on(list(self._stopped))
        for starting in self._starting.values():
            starting.join()
        self.servers.postgres.start()
        if self.servers.valkey.running:
            os.kill(self.servers.valkey.pid, signal.SIGCONT)
        self.servers.valkey.start()
        self.second_beat.kill()
        for process in self.all:
            self.bring_back(process)
        for process in self.all:
            process.await_ready()
