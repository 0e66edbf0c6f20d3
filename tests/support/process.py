"""A program of the tests, run as a process of its own: it writes to a log file and never outlives us."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


class Process:
    """Started, killed, frozen and started again; the block's end kills it and all it has started."""

    def __init__(self, name: str, words: Sequence[str], *, log: Path, env: Mapping[str, str]):
        self.name = name
        self.log_path = log
        self._words = list(words)
        self._env = dict(env)
        self._seen = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it; returns when it is ready (see `is_ready`)."""
        self.launch()
        self.await_ready()

    def launch(self) -> None:
        """Start it without waiting, so that several start side by side."""
        self._seen = self.log_path.stat().st_size if self.log_path.exists() else 0
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=self._env,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def await_ready(self) -> None:
        """Wait for `is_ready`; AssertionError with the log's end when it has died instead."""
        eventually(self._ready_or_dead, within=60.0)

    def _ready_or_dead(self) -> bool:
        assert self.running, f"{self.name} ended while starting:\n{self.log[-3000:]}"
        return self.is_ready()

    def is_ready(self) -> bool:
        """The fact that a start waits for."""
        return True

    @property
    def log(self) -> str:
        """What it has said since its last start."""
        with self.log_path.open("rb") as log:
            log.seek(self._seen)
            return log.read().decode(errors="replace")

    @property
    def pid(self) -> int:
        """The process that we have started (a worker's main process)."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """It has not ended."""
        return self._process is not None and self._process.poll() is None

    def children(self) -> list[int]:
        """Its living children: a prefork worker's pool."""
        return sorted(pid for pid in _pids() if parent_of(pid) == self.pid and not is_dead(pid))

    def kill(self) -> None:
        """SIGKILL to it and to its whole session at once; returns when it and its children are gone."""
        if self._process is None:
            return
        children = self.children()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)
        eventually(lambda: all(is_dead(pid) for pid in children))

    def kill_main(self) -> None:
        """SIGKILL to the main process alone, as the kernel's OOM killer does."""
        os.kill(self.pid, signal.SIGKILL)
        assert self._process is not None
        self._process.wait(30)

    def send(self, number: signal.Signals) -> None:
        """A signal to the main process alone."""
        os.kill(self.pid, number)

    def wait(self, within: float = 60.0) -> int:
        """Its exit status once it has ended by itself."""
        assert self._process is not None
        return self._process.wait(within)

    def freeze(self) -> list[int]:
        """SIGSTOP to it and all its children; returns when all stand still."""
        pids = [self.pid, *self.children()]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        eventually(lambda: all(state_of(pid) == "T" for pid in pids))
        return pids

    def thaw(self) -> None:
        """SIGCONT to it and all its children."""
        for pid in [*self.children(), self.pid]:
            os.kill(pid, signal.SIGCONT)


def cpu_seconds(*pids: int) -> float:
    """How long these processes have worked, whatever else the machine had to do meanwhile."""
    ticks = [int(field) for pid in pids for field in (_stat(pid) or [])[11:13]]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def kill_and_await(pid: int) -> None:
    """SIGKILL to one process (a pool child); returns when it is dead."""
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: is_dead(pid))


def is_dead(pid: int) -> bool:
    """Gone, or a zombie that its parent has not yet looked at; its sockets are closed."""
    # The first thread is a zombie at once, while the others still die and hold the files open.
    return state_of(pid) in ("", "Z", "X") and _threads(pid) <= 1


def state_of(pid: int) -> str:
    """R, S, T (stopped), Z ...; "" when there is no such process."""
    return (_stat(pid) or [""])[0]


def parent_of(pid: int) -> int:
    """The parent's pid; 0 when there is no such process."""
    return int((_stat(pid) or ["", "0"])[1])


def _stat(pid: int) -> list[str] | None:
    try:
        # The name in parentheses may hold anything, also spaces and parentheses.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def owner_of_connection(port: int, peer: int, among: Callable[[], Sequence[int]]) -> int:
    """Which of the processes `among()` is connected from this local port to the port `peer` here."""

    def find() -> int | None:
        inode = _inode(port, peer)
        return next((pid for pid in among() if inode in _sockets(pid)), None)

    found = eventually(find)
    assert found is not None
    return found


def _inode(port: int, peer: int) -> str:
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        # Both ends: one local port may serve several connections, and old ones linger.
        if fields[1].endswith(f":{port:04X}") and fields[2].endswith(f":{peer:04X}"):
            return f"socket:[{fields[9]}]"
    return ""


def _sockets(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def die_with_parent() -> None:
    """In a child before it becomes its program: SIGKILL when the parent dies."""
    # Only Linux has it; elsewhere the blocks' ends must do.
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
