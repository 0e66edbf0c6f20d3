"""What really happened, written to a file by nodes and fake providers: the oracle, not the ledger."""

from __future__ import annotations

import os
from pathlib import Path


class Log:
    """Lines in order, also from processes that died a moment later."""

    def __init__(self, path: Path):
        self._path = path
        path.touch()

    def __call__(self, line: object) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(handle, f"{line}\n".encode())
        finally:
            os.close(handle)

    @property
    def lines(self) -> list[str]:
        """Everything so far."""
        return self._path.read_text().splitlines()

    def count(self, line: object) -> int:
        """How often this very line was written."""
        return self.lines.count(str(line))
