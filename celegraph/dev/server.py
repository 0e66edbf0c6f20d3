"""What PostgreSQL and Valkey have in common: a directory, a password, a port, a life.

A server object can be started, stopped, killed and started again on the same data, port and
password; `close` ends it for good.  Not for use by two threads at once.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

from celegraph.dev.binaries import Program
from celegraph.dev.errors import ServerFailed
from celegraph.dev.guarded import Guarded
from celegraph.dev.home import Home, lock_directory, private_file
from celegraph.dev.stray import end_stray

_POLL = 0.01
_STOP_WITHIN = 60.0
_RETRY_WITHIN = 15.0
_LOG_TAIL = 4000
_PORT_TAKEN = "Address already in use"


class LocalServer(ABC):
    """One server on 127.0.0.1, with a password, that ends with this process."""

    name: ClassVar[str]
    # What to send to end it, politest first; SIGKILL follows by itself.
    stop_signals: ClassVar[tuple[int, ...]] = (signal.SIGTERM,)
    # What it says when it could not start now but can in a moment.
    passing_problems: ClassVar[tuple[str, ...]] = ()
    # Recovery after a crash reads the whole log of changes.
    ready_within: ClassVar[float] = 120.0

    def __init__(self, home: Home, *, fsync: bool = True):
        self._home = home
        self._fsync = fsync
        self._directory: Path
        self._program: Program
        self._guarded: Guarded | None = None
        self._password = ""
        self._port = 0

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients connect, password included.  The same after a restart."""

    @property
    def pid(self) -> int:
        """The running server's process."""
        pid = self._guarded.pid if self._guarded else None
        if pid is None:
            raise ServerFailed(self.name, "is not running")
        return pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._guarded is not None and self._guarded.pid is not None

    @property
    def guard_pid(self) -> int:
        """The process that ends the server when we end."""
        if self._guarded is None:
            raise ServerFailed(self.name, "is not running")
        return self._guarded.guard_pid

    @property
    def directory(self) -> Path:
        """Its data, log and configuration."""
        return self._home.path / self.name

    def start(self) -> None:
        """Start and return when clients can connect; nothing if it runs already."""
        if self.running:
            return
        guarded = self._open()
        self._prepare(guarded)
        port_is_promised = self._port != 0
        give_up = time.monotonic() + _RETRY_WITHIN
        while True:
            if not port_is_promised:
                self._port = free_port()
            since = self._log_size()
            pid = guarded.run(self._command())
            if self._await_ready(guarded, pid):
                return
            said = self._said(since)
            passing = any(text in said for text in (_PORT_TAKEN, *self.passing_problems))
            if not passing or time.monotonic() > give_up:
                raise ServerFailed(self.name, "ended while starting", said)
            time.sleep(0.1)

    def stop(self) -> None:
        """An orderly end, awaited.  The data stays, and `start` goes on with it."""
        if self._guarded is None:
            return
        for number in (*self.stop_signals, signal.SIGKILL):
            self._guarded.send(number)
            self._guarded.wait(_STOP_WITHIN)

    def kill(self) -> None:
        """SIGKILL, awaited: what a crash leaves behind."""
        if self._guarded is not None:
            self._guarded.send(signal.SIGKILL)
            self._guarded.wait(_STOP_WITHIN)

    def restart(self) -> None:
        """An orderly end and a new start."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End it for good; a temporary directory goes with it."""
        if self._guarded is not None:
            guarded, self._guarded = self._guarded, None
            guarded.close()
            end_stray(self._directory)  # somebody killed the guard
        if self._home.temporary:
            # The guard's work, unless it was killed or never came to life.
            self._home.remove(self.name)

    @abstractmethod
    def _find(self) -> Program:
        """The server's program, where its account can run it."""

    @abstractmethod
    def _prepare(self, guarded: Guarded) -> None:
        """Files that must be there before a start."""

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """The command line; it must contain the directory and no secrets."""

    @abstractmethod
    def _is_ready(self, pid: int) -> bool:
        """Whether this very process, and not an earlier one, takes clients."""

    def _open(self) -> Guarded:
        if self._guarded is not None:
            return self._guarded
        self._program = self._find()
        self._directory = self._home.directory(self.name)
        lock = lock_directory(self._directory)
        try:
            end_stray(self._directory)
            self._log.unlink(missing_ok=True)
            self._guarded = Guarded(
                self._directory,
                account=self._home.account,
                lock=lock,
                stop_signals=self.stop_signals,
                remove=self._home.temporary,
            )
        finally:
            os.close(lock)  # from here on the guard holds it, exactly as long as it lives
        return self._guarded

    def _keep_password(self) -> None:
        """The password is as old as the data."""
        path = self._directory / "password"
        if not path.exists():
            private_file(path, secrets.token_urlsafe(24), self._home.account)
        self._password = path.read_text()

    def _await_ready(self, guarded: Guarded, pid: int) -> bool:
        """True: clients can connect.  False: the server ended."""
        deadline = time.monotonic() + self.ready_within
        while time.monotonic() < deadline:
            if self._is_ready(pid):
                return True
            if guarded.wait(_POLL) is not None:
                return False
        raise ServerFailed(self.name, f"not ready in {self.ready_within:.0f} s", self._said(0))

    @property
    def _log(self) -> Path:
        return self._directory / "log"

    def _log_size(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0

    def _said(self, since: int) -> str:
        with self._log.open("rb") as log:
            log.seek(since)
            return log.read().decode(errors="replace")[-_LOG_TAIL:]


def free_port() -> int:
    """A port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
