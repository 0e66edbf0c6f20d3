"""A program of ours (a worker, beat, Flower) that ends with this process, however this process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from celegraph.dev.account import own_directory
from celegraph.dev.errors import ServerFailed
from celegraph.dev.guarded import Guarded
from celegraph.dev.home import Home, lock_directory
from celegraph.dev.stray import end_stray

_READY_WITHIN = 60.0
_POLL = 0.02
_LOG_TAIL = 4000


class KeptProcess:
    """Python run with `arguments`, which name the process's own directory, so that a stray is known.

    It can be killed and started again; `close` ends it for good.  Not for use by two threads at once.
    """

    def __init__(self, home: Home, name: str):
        self.name = name
        # It runs as ourselves, so unlike a server's directory this one is open to nobody else.
        self.directory = own_directory(home.path / name, 0o700)
        self.log = self.directory / "log"
        self._arguments: Sequence[str] = ()
        self._environment: Mapping[str, str] = {}
        self._since = 0
        lock = lock_directory(self.directory)
        try:
            end_stray(self.directory)
            self.log.unlink(missing_ok=True)
            self._guarded = Guarded(
                self.directory,
                account=None,
                lock=lock,
                stop_signals=(signal.SIGTERM, signal.SIGQUIT),
                remove=home.temporary,
            )
        finally:
            os.close(lock)  # from here on the guard holds it

    def start(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it; what it needs to know secretly goes into the environment, never on the command line."""
        self._arguments, self._environment = arguments, environment
        self.start_again()

    def start_again(self) -> None:
        """The same program once more, after its end."""
        self._since = self.log.stat().st_size if self.log.exists() else 0
        # Its temporary files live and die with it, also those that a SIGKILL leaves.
        environment = {**self._environment, "TMPDIR": str(self.directory)}
        self._guarded.run([sys.executable, *self._arguments], environment)

    def await_log(self, text: str) -> None:
        """Return when the program has said `text` since its last start, or raise what it said instead."""
        deadline = time.monotonic() + _READY_WITHIN
        while text not in (said := self._said()):
            if self.pid is None or time.monotonic() > deadline:
                raise ServerFailed(self.name, "it did not start", said[-_LOG_TAIL:])
            time.sleep(_POLL)

    @property
    def pid(self) -> int | None:
        """The running process, if it runs."""
        return self._guarded.pid

    def send(self, number: int) -> None:
        """A signal, if it runs."""
        self._guarded.send(number)

    def kill(self) -> None:
        """SIGKILL, awaited."""
        self._guarded.send(signal.SIGKILL)
        self._guarded.wait(_READY_WITHIN)

    def close(self) -> None:
        """End it in order; its directory goes with it if the home is a passing one."""
        self._guarded.close()
        end_stray(self.directory)

    def tail(self, lines: int = 20) -> str:
        """The end of its log, for the report of a failure."""
        return "\n".join(self._said().splitlines()[-lines:])

    def _said(self) -> str:
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._since)
            return log.read().decode(errors="replace")


def passing_directory(home: Home, name: str) -> tuple[Path, Guarded]:
    """A directory that disappears with this process, and its keeper, to be closed at the end."""
    directory = own_directory(home.path / name, 0o700)
    lock = lock_directory(directory)
    try:
        return directory, Guarded(directory, account=None, lock=lock, stop_signals=(), remove=home.temporary)
    finally:
        os.close(lock)


def is_child(pid: int, parent: int | None) -> bool:
    """Whether `pid` is a living child of `parent`."""
    return parent is not None and _parent_of(pid) == parent


def _parent_of(pid: int) -> int | None:
    if Path("/proc/self/stat").exists():
        try:
            # The name in parentheses may contain anything; what follows the last one is numbers.
            after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
        except (FileNotFoundError, ProcessLookupError):
            return None
        return int(after_name.split()[1])
    return _parent_by_ps(pid)


def _parent_by_ps(pid: int) -> int | None:
    told = subprocess.run(  # noqa: S603 - macOS has no /proc
        ["/bin/ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return int(told.stdout) if told.stdout.strip().isdigit() else None
