"""The servers of `celegraph demo`, `celegraph dev` and the tests."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from celegraph.dev.errors import LocalServersError
from celegraph.dev.home import Home
from celegraph.dev.postgres import Postgres
from celegraph.dev.valkey import Valkey

DATABASE_VARIABLES = ("CELEGRAPH_DATABASE_URL", "DATABASE_URL")
BROKER_VARIABLES = ("CELERY_BROKER_URL",)


class LocalServers:
    """A PostgreSQL and a broker: those the environment names, else our own for the block's length.

    Our own keep their data between blocks, in `home` or by the working directory, unless
    `temporary`.  They end with this process, however it ends.
    """

    def __init__(self, *, fsync: bool = True, home: Path | None = None, temporary: bool = False) -> None:
        if home is not None and temporary:
            raise ValueError("a temporary home is a new directory; give either of the two")
        self._fsync = fsync
        self._path = home
        self._temporary = temporary
        self._database_url = _from_environment(DATABASE_VARIABLES)
        self._broker_url = _from_environment(BROKER_VARIABLES)
        self._postgres: Postgres | None = None
        self._valkey: Valkey | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if not self._database_url or not self._broker_url:
                home = self._home()
                if not self._database_url:
                    self._postgres = stack.enter_context(Postgres(home, fsync=self._fsync))
                if not self._broker_url:
                    self._valkey = stack.enter_context(Valkey(home, fsync=self._fsync))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def database_url(self) -> str:
        return self._database_url or self.postgres.url

    @property
    def broker_url(self) -> str:
        return self._broker_url or self.valkey.url

    @property
    def postgres(self) -> Postgres:
        """Our own PostgreSQL, to stop, kill and start."""
        if self._postgres is None:
            raise LocalServersError(_not_ours("PostgreSQL", DATABASE_VARIABLES))
        return self._postgres

    @property
    def valkey(self) -> Valkey:
        """Our own broker, to stop, kill and start."""
        if self._valkey is None:
            raise LocalServersError(_not_ours("the broker", BROKER_VARIABLES))
        return self._valkey

    def _home(self) -> Home:
        if self._temporary:
            return Home.passing()
        return Home.at(self._path) if self._path else Home.of_working_directory()


def _from_environment(names: tuple[str, ...]) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _not_ours(what: str, names: tuple[str, ...]) -> str:
    return f"{what} is not ours to control: it was not started here, or {' or '.join(names)} is set"
