"""Where the servers' data lives, and the lock that keeps two starts apart."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from celegraph.dev.account import SHARED, Account, own_directory, server_account
from celegraph.dev.errors import HomeInUse, LocalServersError
from celegraph.dev.stray import command_of

_LAST_ONE_ENDS_WITHIN = 60.0
_MEMORY = Path("/dev/shm")  # noqa: S108 - mkdtemp makes what we use there
_ROOMY = 2 * 1024**3  # a container's default of 64 MB would not hold one database cluster


@dataclass(frozen=True)
class Home:
    """A directory with one subdirectory per server.

    Started by root, it must be reachable by the account that the servers run as.
    """

    path: Path
    account: Account | None
    temporary: bool

    @classmethod
    def of_working_directory(cls) -> Home:
        """`.celegraph/` here; for root, whose directory may be closed to others, in /var/tmp."""
        account = server_account()
        if account is None:
            return cls(own_directory(Path.cwd() / ".celegraph", 0o700), account, False)
        digest = hashlib.sha256(os.fsencode(Path.cwd())).hexdigest()[:12]
        return cls(own_directory(SHARED / f"celegraph-{digest}", 0o711), account, False)

    @classmethod
    def at(cls, path: Path) -> Home:
        """A directory of the caller's choice, made if missing, kept afterwards."""
        account = server_account()
        path = path.absolute()
        path.mkdir(parents=True, exist_ok=True)
        if account and (closed := closed_to(account, path)):
            raise LocalServersError(
                f"root's servers run as user {account.name}, who cannot enter {closed};"
                " choose a directory elsewhere, e.g. in /var/tmp, or none"
            )
        return cls(path, account, False)

    @classmethod
    def passing(cls, *, in_memory: bool = False) -> Home:
        """A new directory that disappears with its servers.

        In memory, if there is plenty: a database is copied several times as fast.
        """
        account = server_account()
        place = SHARED if account else None
        if in_memory and _is_roomy(_MEMORY):
            place = _MEMORY
        path = Path(tempfile.mkdtemp(prefix="celegraph-run-", dir=place))
        if account:
            path.chmod(0o711)
        return cls(path, account, True)

    def remove(self, name: str | None = None) -> None:
        """Remove one server's data, or all there is."""
        shutil.rmtree(self.path / name if name else self.path, ignore_errors=True)
        with contextlib.suppress(OSError):  # another server is still there
            self.path.rmdir()

    def directory(self, name: str) -> Path:
        """A server's place.  Written by us alone; what the server may write lies one level down."""
        return own_directory(self.path / name, 0o711 if self.account else 0o700)


def lock_directory(directory: Path) -> int:
    """The descriptor that holds `directory` for us and for whom we hand it to, or `HomeInUse`."""
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(lock, directory)
    except BaseException:
        os.close(lock)
        raise
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def _take(lock: int, directory: Path) -> None:
    deadline = time.monotonic() + _LAST_ONE_ENDS_WITHIN
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = os.pread(lock, 32, 0).decode().strip()
            # A holder that was killed: its guard is ending the server and then lets go.
            alive = holder.isdigit() and command_of(int(holder))
            if alive or time.monotonic() > deadline:
                raise HomeInUse(directory, holder) from None
            time.sleep(0.02)


def private_file(path: Path, text: str, account: Account | None) -> None:
    """Write a file with secrets: readable by its server and by nobody else at any moment."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    if account:
        account.own(path)


def server_directory(path: Path, account: Account | None) -> Path:
    """An empty or existing directory that the server itself may write in."""
    path.mkdir(mode=0o700, exist_ok=True)
    if account:
        account.own(path)
    return path


def _is_roomy(place: Path) -> bool:
    return os.access(place, os.W_OK) and shutil.disk_usage(place).free >= _ROOMY


def closed_to(account: Account, path: Path) -> Path | None:
    """The first directory on the way that `account` may not enter."""
    for step in [*reversed(path.parents), path]:
        found = step.stat()
        if found.st_uid == account.uid:
            needed = stat.S_IXUSR
        else:
            needed = stat.S_IXGRP if found.st_gid == account.gid else stat.S_IXOTH
        if not found.st_mode & needed:
            return step
    return None
