"""Real Celery processes: workers of every pool, the control worker, beat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tests.support.process import Process
from tests.support.waiting import eventually

T = TypeVar("T")
APP = "tests.support.app:app"


class Worker(Process):
    """`celery worker`; ready when it consumes."""

    def __init__(
        self,
        name: str,
        *,
        directory: Path,
        env: Mapping[str, str],
        pool: str = "prefork",
        concurrency: int = 2,
        queues: Sequence[str] = (),
        beat: bool = False,
        options: Sequence[str] = (),
        app: str = APP,
    ):
        words = ["-m", "celery", "-A", app, "worker", "-n", f"{name}@%h", "-P", pool, "-c", str(concurrency)]
        words += ["-l", "INFO", "--without-gossip", "--without-mingle"]
        words += ["-Q", ",".join(queues)] if queues else []
        words += ["-B", "-s", str(directory / f"{name}.schedule")] if beat else []
        super().__init__(name, [*words, *options], log=directory / f"{name}.log", env=env)

    def is_ready(self) -> bool:
        """Celery has said so; `worker_ready` has been sent by then."""
        return " ready." in self.log


class Beat(Process):
    """`celery beat`; its ticks need a worker on the control queue."""

    def __init__(self, name: str, *, directory: Path, env: Mapping[str, str], app: str = APP):
        words = ["-m", "celery", "-A", app, "beat", "-l", "INFO", "-s", str(directory / f"{name}.schedule")]
        super().__init__(name, words, log=directory / f"{name}.log", env=env)

    def is_ready(self) -> bool:
        """It has begun to count."""
        return "beat: Starting..." in self.log


def answered(ask: Callable[[], T]) -> T:
    """What workers answer to a broadcast of Celery's; asked again until one does.

    A worker says that it is ready before it listens to them, and what was sent earlier reaches nobody.
    """
    return eventually(ask, within=30)


def supervised(worker: Worker, fact: Callable[[], bool], within: float = 40.0) -> None:
    """Wait for the fact and start the worker again when it ends, as systemd does.

    kombu 5.7 fails on an acknowledgement whose channel was closed, and then Celery ends.
    """

    def look() -> bool:
        if not worker.running:
            worker.start()
        return fact()

    eventually(look, within=within)
