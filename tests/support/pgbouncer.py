"""A real PgBouncer in front of the suite's PostgreSQL, in the pool mode a test asks for.

It also speaks TLS, which the PostgreSQL from a wheel does not.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import trustme

from celegraph.dev.account import runnable
from celegraph.dev.binaries import Program
from celegraph.dev.guarded import Guarded
from celegraph.dev.home import Home, private_file
from celegraph.dev.server import LocalServer

PoolMode = Literal["session", "transaction"]


@contextmanager
def pgbouncer(database_url: str, mode: PoolMode, *, tls: bool = False) -> Iterator[str]:
    """The URL of the same database through PgBouncer; the test is skipped where there is none.

    `tls`: it takes encrypted connections only.

    Not in CI, whose script installs it: there a missing one is a failure.
    """
    if _binary() is None:
        if os.environ.get("CI"):
            pytest.fail("no pgbouncer: apt-get install pgbouncer, as .ci/run does")
        pytest.skip("no pgbouncer on this machine: apt-get install pgbouncer")
    with PgBouncer(Home.passing(), database_url, mode, tls=tls) as server:
        yield server.url


def _binary() -> str | None:
    # Debian puts it where an ordinary user's PATH does not lead.
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class PgBouncer(LocalServer):
    """Runs as an unprivileged user: it refuses root as PostgreSQL does."""

    name = "pgbouncer"

    def __init__(self, home: Home, database_url: str, mode: PoolMode, *, tls: bool = False):
        super().__init__(home)
        self._behind = urlsplit(database_url)
        self._mode = mode
        self._tls = tls

    @property
    def url(self) -> str:
        """The database behind it, with the same user and password."""
        netloc = f"{self._behind.username}:{self._behind.password}@127.0.0.1:{self._port}"
        query = "sslmode=require" if self._tls else self._behind.query
        return urlunsplit(self._behind._replace(netloc=netloc, query=query))

    def _find(self) -> Program:
        return runnable(Program(Path(str(_binary())), "this machine"), self._home.account)

    def _prepare(self, guarded: Guarded) -> None:
        user, password = self._behind.username, self._behind.password
        private_file(self._directory / "users", f'"{user}" "{password}"\n', self._home.account)
        if self._tls:
            own = trustme.CA().issue_cert("127.0.0.1")
            key, chain = own.private_key_pem.bytes(), own.cert_chain_pems[0].bytes()
            private_file(self._directory / "key.pem", key.decode(), self._home.account)
            private_file(self._directory / "chain.pem", chain.decode(), self._home.account)

    def _command(self) -> Sequence[str | Path]:
        config = self._directory / "pgbouncer.ini"
        private_file(config, self._settings(), self._home.account)
        return [self._program.executable, config]

    def _settings(self) -> str:
        behind = self._behind
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(self._port),
            "unix_socket_dir": "",
            "auth_type": "md5",
            "auth_file": str(self._directory / "users"),
            "pool_mode": self._mode,
            # Two, so that two clients inside transactions get two backends; sessions need one each, and a
            # worker with its children has up to thirty.
            "default_pool_size": "60" if self._mode == "session" else "2",
            "ignore_startup_parameters": "extra_float_digits",
        }
        if self._tls:
            settings |= {
                "client_tls_sslmode": "require",
                "client_tls_key_file": str(self._directory / "key.pem"),
                "client_tls_cert_file": str(self._directory / "chain.pem"),
            }
        lines = [
            "[databases]",
            f"* = host={behind.hostname} port={behind.port}"
            f" user={behind.username} password={behind.password}",
            "[pgbouncer]",
            *(f"{name} = {value}" for name, value in settings.items()),
        ]
        return "\n".join(lines) + "\n"

    def _is_ready(self, pid: int) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:  # not listening yet
            return False
        return True
