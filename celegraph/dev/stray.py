"""A server whose guard was killed with SIGKILL runs on; the next start in its directory ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

_GONE_WITHIN = 10.0


def end_stray(directory: Path) -> None:
    """Kill the server that `directory` still names.  Call it only under the directory's lock."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        pid = int((directory / "server.pid").read_text())
        if str(directory) in command_of(pid):  # else the pid has been given to a stranger
            os.kill(pid, signal.SIGKILL)
            _await_end(pid)
    (directory / "server.pid").unlink(missing_ok=True)


def command_of(pid: int) -> str:
    """The command line of a process; empty if there is none of this pid."""
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError):
            return ""
    told = subprocess.run(  # noqa: S603 - macOS has no /proc
        ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout


def _await_end(pid: int) -> None:
    deadline = time.monotonic() + _GONE_WITHIN
    while command_of(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
