"""A private Valkey (or Redis): a password, 127.0.0.1 only, every acknowledged write in the AOF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import redis

from celegraph.dev.account import runnable
from celegraph.dev.binaries import Program, find_valkey
from celegraph.dev.guarded import Guarded
from celegraph.dev.home import private_file, server_directory
from celegraph.dev.server import LocalServer


class Valkey(LocalServer):
    """A broker with its data in `<home>/valkey/data`."""

    name = "valkey"

    @property
    def url(self) -> str:
        return f"redis://:{self._password}@127.0.0.1:{self._port}/0"

    def _find(self) -> Program:
        return runnable(find_valkey(), self._home.account)

    def _prepare(self, guarded: Guarded) -> None:
        self._keep_password()
        server_directory(self._directory / "data", self._home.account)

    def _command(self) -> Sequence[str | Path]:
        # The password goes through a file: command lines are readable by every user.
        config = self._directory / "valkey.conf"
        private_file(config, self._settings(), self._home.account)
        return [self._program.executable, config]

    def _settings(self) -> str:
        settings = {
            "bind": "127.0.0.1",
            "port": str(self._port),
            "requirepass": _quoted(self._password),
            "dir": _quoted(str(self._directory / "data")),
            "appendonly": "yes",
            "appendfsync": "always" if self._fsync else "no",
            "save": '""',
            "daemonize": "no",
            "set-proc-title": "no",  # the command line names the directory, see stray.py
        }
        return "".join(f"{key} {value}\n" for key, value in settings.items())

    def _is_ready(self, pid: int) -> bool:
        # Only our server knows the password, so an answer is not a stranger's on the same port.
        with redis.Redis.from_url(self.url, socket_timeout=1, socket_connect_timeout=1) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:  # not listening yet, or still loading the AOF
                return False


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
