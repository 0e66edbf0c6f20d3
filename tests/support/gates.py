"""Gates in the nodes of test graphs: a node stands still exactly where a test wants to kill it.

A gate is a file while it is closed, and an arrival is a file too: both outlive every process.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.waiting import eventually

DIRECTORY = "CELEGRAPH_TEST_DIRECTORY"
ANY = "any run"
_POLL = 0.002


@dataclass(frozen=True)
class Arrival:
    """A process stands (or stood) at a gate."""

    run_id: str
    gate: str
    pid: int


class Gates:
    """Both sides: a test closes, awaits and opens; a node passes."""

    def __init__(self, directory: Path):
        self._closed = directory / "gates"
        self._arrived = directory / "arrived"
        for place in (self._closed, self._arrived):
            place.mkdir(parents=True, exist_ok=True)

    def close(self, gate: str, run_id: str = ANY) -> None:
        """From now on every pass of this run's node through `gate` stands still, until `open`."""
        (self._closed / f"{gate} of {run_id}").touch()

    def open(self, gate: str, run_id: str = ANY) -> None:
        """Let all go on, now and later."""
        (self._closed / f"{gate} of {run_id}").unlink(missing_ok=True)

    def open_all(self) -> None:
        """Let everything go on."""
        for path in self._closed.iterdir():
            path.unlink(missing_ok=True)

    def arrivals(self, gate: str, run_id: str = ANY) -> list[Arrival]:
        """Who has come to the closed gate, oldest first."""
        found = [(_read(path), path) for path in self._arrived.iterdir()]
        # Looked for before they are sorted: a soak leaves thousands.
        here = [(a, path) for a, path in found if a.gate == gate and run_id in (ANY, a.run_id)]
        return [a for a, _ in sorted(here, key=lambda pair: pair[1].stat().st_mtime_ns)]

    def await_arrival(
        self, gate: str, run_id: str = ANY, *, number: int = 1, within: float = 60.0
    ) -> Arrival:
        """The `number`-th arrival: the node is exactly here, in process `pid`."""
        return eventually(lambda: self.arrivals(gate, run_id)[number - 1 :], within=within)[0]

    def is_closed(self, gate: str, run_id: str) -> bool:
        """A pass of this run's node would stand still now."""
        return any((self._closed / f"{gate} of {whose}").exists() for whose in (run_id, ANY))

    def pass_through(self, gate: str, run_id: str) -> None:
        """Called in a node: announce and stand still while the gate is closed."""
        closed = [self._closed / f"{gate} of {whose}" for whose in (run_id, ANY)]
        if not any(path.exists() for path in closed):
            return
        stamp = f"{os.getpid()}-{time.monotonic_ns()}"
        (self._arrived / f"{gate} of {run_id} by {stamp}").touch()
        while any(path.exists() for path in closed):
            time.sleep(_POLL)


def _read(path: Path) -> Arrival:
    gate, _, rest = path.name.partition(" of ")
    run_id, _, stamp = rest.rpartition(" by ")
    return Arrival(run_id, gate, int(stamp.partition("-")[0]))


def gates_of_process() -> Gates:
    """The gates of the test that has started this process."""
    return Gates(Path(os.environ[DIRECTORY]))
