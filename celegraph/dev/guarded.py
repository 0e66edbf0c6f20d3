"""The parent's side of `guard.py`: one child process that cannot outlive us."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, cast

from celegraph.dev import guard as guard_script
from celegraph.dev.account import ENVIRONMENT, Account
from celegraph.dev.errors import ServerFailed

_FAREWELL = 60.0  # seconds for a guard to stop its server; it escalates to SIGKILL by itself


class Guarded:
    """Runs programs one after the other in a directory whose lock is held by the guard."""

    def __init__(
        self,
        directory: Path,
        *,
        account: Account | None,
        lock: int,
        stop_signals: Sequence[int],
        remove: bool,
    ):
        self._directory = directory
        self._remove = remove
        self._pending = b""
        self._started: int | None = None
        self._pid: int | None = None
        self._exit: int | None = None
        owner = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
        spec = {
            "directory": str(directory),
            "owner": owner,
            "stop_signals": [*stop_signals, signal.SIGKILL],
            "remove": remove,
            "parent": os.getpid(),
        }
        # A session of its own: Ctrl-C is for the workers first, the servers follow when we end.
        self._process = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-I", "-S", guard_script.__file__, json.dumps(spec)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            start_new_session=True,
            pass_fds=[lock],
            bufsize=0,
        )
        self._orders = cast(IO[bytes], self._process.stdin)
        self._answers = cast(IO[bytes], self._process.stdout)

    @property
    def guard_pid(self) -> int:
        """The process that is the server's parent."""
        return self._process.pid

    @property
    def pid(self) -> int | None:
        """The running child, if there is one."""
        self._hear(0)
        return self._pid

    def run(self, argv: Sequence[str | Path], environment: Mapping[str, str] = ENVIRONMENT) -> int:
        """Start a program and return its pid."""
        self._started = self._exit = None
        # Over the pipe, not on the guard's command line, which every user can read.
        self._tell({"run": [str(word) for word in argv], "environment": dict(environment)})
        while self._started is None:
            self._hear(None)
        return self._started

    def send(self, number: int) -> None:
        """A signal to the child, if it still runs."""
        if self.pid is not None:
            self._tell({"signal": int(number)})

    def wait(self, timeout: float) -> int | None:
        """The child's exit status, or None if it still runs after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while self._pid is not None and (left := deadline - time.monotonic()) > 0:
            self._hear(left)
        return self._exit

    def close(self) -> None:
        """Stop the child and the guard; both are gone afterwards."""
        with contextlib.suppress(BrokenPipeError):
            self._orders.close()
        try:
            self._process.wait(_FAREWELL)
        finally:
            self._answers.close()

    def _tell(self, order: dict[str, object]) -> None:
        try:
            self._orders.write(json.dumps(order).encode() + b"\n")
        except BrokenPipeError:
            raise self._guard_died() from None

    def _hear(self, timeout: float | None) -> None:
        """Take in what the guard has said, waiting at most `timeout` for the first word."""
        while select.select([self._answers], [], [], timeout)[0]:
            received = os.read(self._answers.fileno(), 65536)
            if not received:
                raise self._guard_died()
            *lines, self._pending = (self._pending + received).split(b"\n")
            for line in lines:
                self._note(json.loads(line))
            timeout = 0

    def _note(self, fact: dict[str, object]) -> None:
        match fact:
            case {"pid": int(pid)}:
                self._started = self._pid = pid
            case {"exit": int(status)}:
                self._pid, self._exit = None, status
            case {"failed": problem}:
                raise ServerFailed(self._directory.name, str(problem))

    def _guard_died(self) -> ServerFailed:
        return ServerFailed(self._directory.name, f"its guard (process {self.guard_pid}) has died")
