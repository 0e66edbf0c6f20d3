"""A private PostgreSQL: scram passwords, TCP on 127.0.0.1 only, no unix socket."""

from __future__ import annotations

import contextlib
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from celegraph.dev.account import runnable
from celegraph.dev.binaries import Program, find_postgres
from celegraph.dev.errors import ServerFailed
from celegraph.dev.guarded import Guarded
from celegraph.dev.home import server_directory
from celegraph.dev.server import LocalServer
from celegraph.dev.stray import command_of

_USER = "celegraph"
_INITDB_WITHIN = 120.0


class Postgres(LocalServer):
    """A database cluster in `<home>/postgres/data`."""

    name = "postgres"
    # SIGINT: disconnect clients and end in order.  SIGQUIT: end now, recover at the next start.
    stop_signals = (signal.SIGINT, signal.SIGQUIT)
    # Backends outlive a killed postmaster for a moment; their memory keeps a new one out.
    passing_problems = ("pre-existing shared memory block",)

    @property
    def url(self) -> str:
        return f"postgresql://{_USER}:{self._password}@127.0.0.1:{self._port}/postgres"

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def _find(self) -> Program:
        return runnable(find_postgres(), self._home.account)

    def _prepare(self, guarded: Guarded) -> None:
        if self._data.exists():
            self._keep_password()
            self._disown_stale_pid(guarded)
            return
        # Renamed when complete: an interrupted initdb leaves nothing that looks like a cluster.
        unfinished = self._directory / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        (self._directory / "password").unlink(missing_ok=True)
        self._keep_password()
        server_directory(unfinished, self._home.account)
        guarded.run(self._initdb(unfinished))
        if guarded.wait(_INITDB_WITHIN) != 0:
            raise ServerFailed(self.name, "initdb failed", self._said(0))
        unfinished.rename(self._data)

    def _initdb(self, data: Path) -> Sequence[str | Path]:
        return [
            self._program.beside("initdb"),
            f"--pgdata={data}",
            f"--username={_USER}",
            "--auth=scram-sha-256",
            f"--pwfile={self._directory / 'password'}",
            "--encoding=UTF8",
            "--no-locale",
            "--no-instructions",
            *([] if self._fsync else ["--no-sync"]),
        ]

    def _command(self) -> Sequence[str | Path]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._port),
            # No socket file: nothing to leave behind, and no limit of 104 bytes for its path.
            "unix_socket_directories": "",
            "max_connections": "200",
            # In the data directory: segments in /dev/shm would outlive a SIGKILL, and containers
            # give /dev/shm 64 MB.
            "dynamic_shared_memory_type": "mmap",
            "fsync": "on" if self._fsync else "off",
            "full_page_writes": "on" if self._fsync else "off",
            "max_wal_size": "1GB" if self._fsync else "128MB",
        }
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return [self._program.executable, "-D", self._data, *options]

    def _is_ready(self, pid: int) -> bool:
        lines = self._pid_lines()
        # After a SIGKILL the old file still says "ready": line 1 tells whose word it is.
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _pid_lines(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return (self._data / "postmaster.pid").read_text().splitlines()
        return []

    def _disown_stale_pid(self, guarded: Guarded) -> None:
        """Let PostgreSQL start although its old pid now belongs to a stranger (after a reboot).

        It believes any living process of its user to be the old postmaster, except its own parent.
        The rest of the file stays: by it PostgreSQL finds backends that are still alive.
        """
        lines = self._pid_lines()
        if not lines or not lines[0].isdigit() or str(self._data) in command_of(int(lines[0])):
            return
        path = self._data / "postmaster.pid"
        with path.open("r+") as file:
            file.truncate()
            file.write("\n".join([str(guarded.guard_pid), *lines[1:]]) + "\n")
