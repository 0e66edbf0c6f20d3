"""The local SMTP server seen from outside: start it, send to its URL, read what it delivered."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from celegraph.dev.errors import ServerFailed

# Importing aiosmtpd on a laptop that is busy starting servers takes a while.
_START_S = 30.0


@dataclass(frozen=True)
class Delivery:
    """One accepted message: a line of the server's log."""

    message_id: str
    to: tuple[str, ...]
    time: str
    sha256: str
    run_id: str
    subject: str

    @classmethod
    def from_line(cls, line: str) -> Delivery:
        fields = json.loads(line)
        return cls(**{**fields, "to": tuple(fields["to"])})


def deliveries(log: Path) -> list[Delivery]:
    """Every message the server accepted, oldest first."""
    return [Delivery.from_line(line) for line in log.read_text(encoding="utf-8").split("\n")[:-1]]


@dataclass(frozen=True)
class SmtpServer:
    """A running local SMTP server and the files it speaks through."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    hold_file: Path

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    def deliveries(self) -> list[Delivery]:
        return deliveries(self.log)

    def hold(self, pattern: str) -> None:
        """From now on, do not answer "250" to messages whose id or run matches `pattern`."""
        # Renamed into place: the server never reads half a pattern.
        unfinished = self.hold_file.with_name(self.hold_file.name + ".new")
        unfinished.write_text(pattern + "\n", encoding="utf-8")
        unfinished.replace(self.hold_file)

    def held(self) -> list[dict[str, str]]:
        """The messages that were delivered and left without their "250", oldest first."""
        try:
            text = Path(f"{self.hold_file}.held").read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def let_go(self) -> None:
        """Answer everybody held, and hold no more."""
        self.hold_file.unlink(missing_ok=True)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()


@contextmanager
def smtp_server(directory: Path, *, refuse: Sequence[str] = ()) -> Iterator[SmtpServer]:
    """A local SMTP server for the length of the block; it also ends when this process dies."""
    server = start_smtp(directory, refuse=refuse)
    try:
        yield server
    finally:
        server.stop()


def start_smtp(directory: Path, *, refuse: Sequence[str] = (), port: int = 0) -> SmtpServer:
    """Start the server with its files in `directory`; a log already there is continued."""
    directory.mkdir(parents=True, exist_ok=True)
    log, hold_file, port_file = (directory / name for name in ("mail.jsonl", "hold", "smtp.port"))
    # A port file of an earlier, killed server would be believed.
    port_file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "celegraph.dev.smtp", "--port", str(port), "--log", str(log)]
    command += ["--port-file", str(port_file), "--hold-after-accept", str(hold_file)]
    for address in refuse:
        command += ["--refuse", address]
    with open(directory / "smtp.err", "ab") as errors:
        # The pipe ends the server when we die; its own session keeps a Ctrl-C meant for us away
        # from it, so that it outlives the workers that are still sending.
        process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            command,
            stdin=subprocess.PIPE,
            stdout=errors,
            stderr=errors,
            start_new_session=True,
        )
    return SmtpServer(process, _await_port(process, port_file, directory), log, hold_file)


def _await_port(process: subprocess.Popen[bytes], port_file: Path, directory: Path) -> int:
    give_up = time.monotonic() + _START_S
    while not port_file.exists():
        if process.poll() is not None or time.monotonic() > give_up:
            process.kill()
            process.wait()
            said = (directory / "smtp.err").read_text(errors="replace")[-2000:]
            raise ServerFailed("smtp", "it did not start", said)
        time.sleep(0.01)
    return int(port_file.read_text())
