"""Keeps one server for a parent process and ends it with that parent, even on SIGKILL.

Run as a script by `guarded.py`, with nothing but the standard library.  It is told what to do by
JSON lines on standard input and answers on standard output.  End of input means that the parent
is gone: the server is stopped and, if so told, its directory removed.  A separate process because
nothing the parent does itself survives a SIGKILL, and because PR_SET_PDEATHSIG exists only on
Linux and is reset when root's server becomes another user.

    <- {"run": [argv], "environment": {}}
                              -> {"pid": 4711} or {"failed": "why"}
    <- {"signal": 9}
                              -> {"exit": -9}
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

# Seconds for a server to end on one signal before it gets the next.  A worker whose broker has gone at the
# same moment can sit in its reconnection through two of them; all three fit into half a minute.
_PATIENCE = 10.0
_PARENT_CHECK = 0.5  # a forked child of the parent may hold our input open: look at the parent too


class Guard:
    """At most one child at a time."""

    def __init__(self, spec: dict[str, Any]):
        self.directory = Path(spec["directory"])
        self.owner: dict[str, Any] = spec["owner"]
        self.stop_signals: list[int] = spec["stop_signals"]
        self.remove: bool = spec["remove"]
        self.parent: int = spec["parent"]
        self.child: subprocess.Popen[bytes] | None = None
        self.told_to_end = False
        self.wake, wake_writer = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_writer, False)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._end)

    def keep(self) -> None:
        """Obey until the parent is gone."""
        pending = b""
        while not self.told_to_end and os.getppid() == self.parent:
            ready, _, _ = select.select([0, self.wake], [], [], _PARENT_CHECK)
            if self.wake in ready:
                os.read(self.wake, 4096)
            self._report_exit()
            if 0 not in ready:
                continue
            received = os.read(0, 65536)
            if not received:
                return
            *lines, pending = (pending + received).split(b"\n")
            for line in lines:
                self._obey(json.loads(line))

    def finish(self) -> None:
        """Stop the child, then leave nothing behind that was to be temporary."""
        for number in self.stop_signals:
            if self.child is None or self.child.poll() is not None:
                break
            self.child.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(_PATIENCE)
        self._pid_file.unlink(missing_ok=True)
        if self.remove:
            shutil.rmtree(self.directory, ignore_errors=True)
            with contextlib.suppress(OSError):  # the other server's guard is not done yet
                self.directory.parent.rmdir()

    @property
    def _pid_file(self) -> Path:
        return self.directory / "server.pid"

    def _end(self, *_: object) -> None:
        self.told_to_end = True

    def _obey(self, order: dict[str, Any]) -> None:
        if "run" in order:
            self._run(order["run"], order["environment"])
        elif self.child is not None:
            # Not yet reaped, so the pid cannot have become another process.
            self.child.send_signal(order["signal"])

    def _run(self, argv: list[str], environment: dict[str, str]) -> None:
        try:
            with (self.directory / "log").open("ab") as log:
                self.child = subprocess.Popen(  # noqa: S603 - what our parent says
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    env=environment,
                    start_new_session=True,
                    **self.owner,
                )
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            _say({"failed": str(error)})
            return
        self._pid_file.write_text(str(self.child.pid))
        _say({"pid": self.child.pid})

    def _report_exit(self) -> None:
        if self.child is None or self.child.poll() is None:
            return
        status, self.child = self.child.returncode, None
        self._pid_file.unlink(missing_ok=True)
        _say({"exit": status})


def _say(fact: dict[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the parent is gone; the next look will tell
        os.write(1, json.dumps(fact).encode() + b"\n")


if __name__ == "__main__":
    os.umask(0o077)
    guard = Guard(json.loads(sys.argv[1]))
    try:
        guard.keep()
    finally:
        guard.finish()
