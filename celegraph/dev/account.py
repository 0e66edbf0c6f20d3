"""Whom the servers run as.  PostgreSQL refuses root, so root's servers run as another account.

That account must reach the program and the data.  A virtualenv under a 0700 home is out of its
reach; then the program is copied once to /var/tmp, and no permission of the user's is touched.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from celegraph.dev.binaries import Program
from celegraph.dev.errors import LocalServersError, ServerFailed

_NAMES = ("postgres", "nobody", "daemon")
SHARED = Path("/var/tmp")  # noqa: S108 - every directory made here is checked to be ours
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}


@dataclass(frozen=True)
class Account:
    """An unprivileged user of this machine."""

    name: str
    uid: int
    gid: int

    def own(self, path: Path) -> None:
        """Hand over a file or directory of ours."""
        os.chown(path, self.uid, self.gid)


def server_account() -> Account | None:
    """None: the servers run as the caller.  An account: the caller is root."""
    if os.geteuid() != 0:
        return None
    for name in _NAMES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise LocalServersError(
        "PostgreSQL refuses to run as root, and none of the accounts"
        f" {', '.join(_NAMES)} exists; add one, or set CELEGRAPH_DATABASE_URL"
    )


def runnable(program: Program, account: Account | None) -> Program:
    """The program where `account` can execute it: in place, else a copy in /var/tmp."""
    if account is None or not (problem := _problem(program, account)):
        return program
    if program.root is None:
        raise ServerFailed(str(program.executable), f"user {account.name}: {problem}")
    copied = _copy(program, program.root)
    if problem := _problem(copied, account):
        raise ServerFailed(str(copied.executable), f"user {account.name}: {problem}")
    return copied


def copy_place(program: Program) -> Path:
    """Where this very version of the program is copied to, if it must be."""
    made = program.executable.stat()
    seed = f"{program.executable}:{made.st_size}:{made.st_mtime_ns}"
    return SHARED / f"celegraph-bin-{hashlib.sha256(seed.encode()).hexdigest()[:12]}"


def own_directory(path: Path, mode: int) -> Path:
    """Make `path`, or make sure that it is a directory only we can write to.

    Names in /var/tmp can be guessed: somebody else may have put a link or a directory there.
    """
    try:
        path.mkdir(mode=mode, parents=True)
    except FileExistsError:
        found = path.lstat()
        writable = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or writable:
            raise LocalServersError(
                f"{path} exists and is not a directory of ours alone; remove it"
            ) from None
    else:
        path.chmod(mode)  # the umask may have taken bits away
    return path


def _problem(program: Program, account: Account) -> str:
    """Why `account` cannot run the program; empty if it can, libraries included."""
    try:
        subprocess.run(  # noqa: S603 - a program found by us
            [program.executable, "--version"],
            check=True,
            capture_output=True,
            text=True,
            cwd="/",
            env=ENVIRONMENT,
            user=account.uid,
            group=account.gid,
            extra_groups=[],
        )
    except subprocess.CalledProcessError as error:
        return str(error.stderr).strip() or str(error)
    except OSError as error:
        return str(error)
    return ""


def _copy(program: Program, root: Path) -> Program:
    """The program and its libraries, in the same shape, readable by all and writable by us."""
    target = own_directory(copy_place(program), 0o755)
    lock = os.open(target / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second start waits for the first one's copy
        if not (target / "complete").exists():
            for part in program.parts:
                _copy_tree(part, target / part.relative_to(root))
            (target / "complete").touch()
    finally:
        os.close(lock)
    return Program(target / program.executable.relative_to(root), f"a copy of {program.origin}")


def _copy_tree(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)  # of a copy that was interrupted
    shutil.copytree(source, target, symlinks=True)
    for path in [target, *target.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
    for parent in target.parents:
        if parent.name.startswith("celegraph-bin-"):
            break
        parent.chmod(0o755)
