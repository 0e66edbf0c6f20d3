"""The trail: nodes of test graphs write down that they were entered, in a file outside the product."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support.gates import DIRECTORY


@dataclass(frozen=True)
class Entry:
    """A node was entered.  `at` is the machine's monotonic clock, the same in every process."""

    run_id: str
    step: str
    pid: int
    at: float


class Trail:
    """One line an entry, appended whole."""

    def __init__(self, directory: Path):
        self._path = directory / "trail.jsonl"
        self._path.touch()

    def note(self, run_id: str, step: str) -> None:
        """Called in a node, first thing."""
        line = json.dumps(asdict(Entry(run_id, step, os.getpid(), time.monotonic())))
        # One write of a short line to a file opened for appending does not mix with others.
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, line.encode() + b"\n")
        finally:
            os.close(descriptor)

    def entries(self, run_id: str | None = None) -> list[Entry]:
        """All entries, or one run's, in the order of time."""
        found = [Entry(**json.loads(line)) for line in self._path.read_text().splitlines()]
        return [entry for entry in found if run_id in (None, entry.run_id)]

    def steps(self, run_id: str) -> list[str]:
        """The names of the nodes entered by this run, in order, repetitions included."""
        return [entry.step for entry in self.entries(run_id)]

    @classmethod
    def of_process(cls) -> Trail:
        """The trail of the test that has started this process."""
        return cls(Path(os.environ[DIRECTORY]))
