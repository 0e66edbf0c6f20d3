"""A real SMTP server for demos and tests, run as its own process; its log alone counts deliveries.

    python -m celegraph.dev.smtp --port 0 --log mail.jsonl --port-file port

One JSON line is on the disk before the client reads "250": a message is delivered when its line is
in the log, whatever the sender believes.  `--hold-after-accept FILE` stops the conversation exactly
between the two, so that a killer can strike there.  What reads the log is in `mailbox.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import email
import email.policy
import fnmatch
import hashlib
import json
import os
import signal
import stat
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import cast

from aiosmtpd.smtp import SMTP, Envelope, Session

RUN_HEADER = "X-Celegraph-Run"
# How often a held conversation looks whether its file is gone: far below any client's timeout.
_HOLD_POLL_S = 0.01
_PARENT_CHECK_S = 0.5


class DeliveryLog:
    """Appends one line per accepted message: whole and on the disk, or not there."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        self._drop_torn_tail()

    def _drop_torn_tail(self) -> None:
        # A server killed while it wrote never answered 250: that message was not accepted.
        size = os.fstat(self._fd).st_size
        written = os.pread(self._fd, size, 0)
        os.ftruncate(self._fd, written.rfind(b"\n") + 1)

    def append(self, line: dict[str, object]) -> None:
        data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        while data:
            data = data[os.write(self._fd, data) :]
        os.fsync(self._fd)


class Hold:
    """Keeps a sender waiting for "250" while `path` exists and names its message or its run.

    Each line of the file is a shell pattern for a Message-ID or an `X-Celegraph-Run` value.
    `path.held` gains a line per held message: the fact a killer waits for.
    """

    def __init__(self, path: Path | None):
        self._path = path

    async def wait(self, message_id: str, run_id: str) -> None:
        if self._path is None or not _named_in(self._path, {message_id, run_id} - {""}):
            return
        with open(f"{self._path}.held", "a", encoding="utf-8") as held:
            held.write(json.dumps({"message_id": message_id, "run_id": run_id}) + "\n")
        while self._path.exists():
            await asyncio.sleep(_HOLD_POLL_S)


def _named_in(path: Path, names: set[str]) -> bool:
    try:
        patterns = [line.strip() for line in path.read_text(encoding="utf-8").split("\n")]
    except FileNotFoundError:
        return False
    return any(
        name == pattern or fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names
    )


class Postman:
    """aiosmtpd's handler: refuses, or writes down and accepts."""

    def __init__(self, log: DeliveryLog, hold: Hold, refused: Sequence[str]):
        self._log = log
        self._hold = hold
        self._refused = {address.lower() for address in refused}

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address.lower() in self._refused:
            return "550 5.1.1 no such mailbox here"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content = cast(bytes, envelope.content)
        message = email.message_from_bytes(content, policy=email.policy.default)
        message_id = _header(message, "Message-ID")
        run_id = _header(message, RUN_HEADER)
        # No await before the line is durable: a client that vanishes cancels this coroutine, and a
        # message must not be half accepted.
        self._log.append(
            {
                "message_id": message_id,
                "to": list(envelope.rcpt_tos),
                "time": datetime.now(UTC).isoformat(),
                "sha256": hashlib.sha256(content.partition(b"\r\n\r\n")[2]).hexdigest(),
                "run_id": run_id,
                "subject": _header(message, "Subject"),
            }
        )
        await self._hold.wait(message_id, run_id)
        return "250 2.0.0 accepted"


def _header(message: EmailMessage, name: str) -> str:
    return str(message.get(name, "")).strip()


async def serve(port: int, port_file: Path | None, postman: Postman) -> None:
    """Serve on 127.0.0.1 until SIGTERM, SIGINT or, when stdin is a pipe, the parent's death."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
        loop.add_reader(sys.stdin.fileno(), _stop_at_eof, stop)
        _stop_when_orphaned(stop, os.getppid())

    def conversation() -> SMTP:
        # The name is given, for asking the resolver for our own can take seconds on a laptop.
        return SMTP(postman, hostname="localhost", enable_SMTPUTF8=True, loop=loop)

    server = await loop.create_server(conversation, "127.0.0.1", port)
    _announce(server.sockets[0].getsockname()[1], port_file)
    await stop.wait()
    # Conversations end with the process: waiting for them would let a held one keep us alive.
    server.close()


def _stop_at_eof(stop: asyncio.Event) -> None:
    # The kernel closes the pipe's other end when the parent dies, also by kill -9.
    if not os.read(sys.stdin.fileno(), 4096):
        stop.set()
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())


def _stop_when_orphaned(stop: asyncio.Event, parent: int) -> None:
    # A forked child of the parent may hold the pipe open after the parent's death.
    if os.getppid() != parent:
        stop.set()
    else:
        loop = asyncio.get_running_loop()
        loop.call_later(_PARENT_CHECK_S, _stop_when_orphaned, stop, parent)


def _announce(port: int, port_file: Path | None) -> None:
    if port_file is None:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        return
    # Renamed into place: who waits for the file never reads half a number.
    unfinished = port_file.with_name(port_file.name + ".new")
    unfinished.write_text(f"{port}\n")
    unfinished.replace(port_file)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m celegraph.dev.smtp", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: the system chooses")
    parser.add_argument("--log", type=Path, required=True, help="JSON lines, one per delivery")
    parser.add_argument("--port-file", type=Path, help="where to write the port, else stdout")
    parser.add_argument("--hold-after-accept", type=Path, metavar="FILE", help="see class Hold")
    parser.add_argument("--refuse", action="append", default=[], metavar="ADDRESS", help="550")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    options = _options(argv)
    postman = Postman(DeliveryLog(options.log), Hold(options.hold_after_accept), options.refuse)
    asyncio.run(serve(options.port, options.port_file, postman))


if __name__ == "__main__":
    main()
