"""A relay in front of PostgreSQL that stops one statement exactly before or after it is durable.

Nothing in the product knows about it: it reads the wire protocol, so a test can await "this process
has asked for this statement and nothing of it is done" (BEFORE) or "it is committed and the process
has not heard of it" (AFTER), and kill the process there.
"""

from __future__ import annotations

import contextlib
import re
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self
from urllib.parse import urlsplit, urlunsplit

from celegraph.ledger.queries import load
from tests.support.process import owner_of_connection
from tests.support.waiting import eventually

Side = Literal["before", "after"]
Statement = Callable[[str], bool]
_LOOK_EVERY = 0.005


def ours(file: str, name: str) -> Statement:
    """Recognises celegraph's own statement `name` of `queries/<file>.sql`."""
    query: bytes = getattr(load(file), name)
    wanted = _plain(query.decode())
    return lambda sql: _plain(sql) == wanted


def either(*statements: Statement) -> Statement:
    """Recognises what one of them recognises."""
    return lambda sql: any(statement(sql) for statement in statements)


def containing(words: str) -> Statement:
    """Recognises statements of LangGraph's by some of their words."""
    return lambda sql: words in sql


def _plain(sql: str) -> str:
    """Without the spelling of parameters: %(name)s in the file, $1 on the wire."""
    return re.sub(r"%\(\w+\)s|\$\d+", "?", sql.replace("%%", "%")).strip()


@dataclass
class Hold:
    """A place where one process stands still: the first that comes there, and no other."""

    matches: Statement
    side: Side
    about: str
    peer: int
    port: int | None = None
    _go: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Let it go on, if it is still there."""
        self._go.set()

    def await_arrival(self, among: Callable[[], Sequence[int]], within: float = 20.0) -> int:
        """The pid of the process (one of `among()`) that stands here now."""
        port = eventually(lambda: self.port, within=within)
        assert port is not None
        return owner_of_connection(port, self.peer, among)


class Wire:
    """The relay; `url` is the database's, seen through it.  Ends with the block."""

    def __init__(self, database_url: str):
        parts = urlsplit(database_url)
        self._target = (str(parts.hostname), parts.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._port: int = self._listener.getsockname()[1]
        credentials = parts.netloc.rpartition("@")[0]
        netloc = f"{credentials}@127.0.0.1:{self._port}"
        # Encryption would hide what we must read; it is asked for before anything else.
        self.url = urlunsplit(parts._replace(netloc=netloc, query="sslmode=disable&gssencmode=disable"))
        self._holds: list[Hold] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for hold in self._holds:
            hold.release()

    @contextlib.contextmanager
    def hold(self, matches: Statement, side: Side, *, about: str = "") -> Iterator[Hold]:
        """For the block's length: the first process to come here stands still.

        `about`: a text among the statement's parameters, like a run_id.
        """
        hold = Hold(matches, side, about, self._port)
        with self._lock:
            self._holds.append(hold)
        try:
            yield hold
        finally:
            with self._lock:
                self._holds.remove(hold)
            hold.release()

    def claim(self, sql: str, parameters: bytes, port: int) -> Hold | None:
        """The hold for this statement of the client at `port`, if there is one still free."""
        with self._lock:
            for hold in self._holds:
                if hold.port is None and hold.matches(sql) and hold.about.encode() in parameters:
                    # An AFTER hold is reached when the answer is here, not when it is asked for.
                    hold.port = port if hold.side == "before" else 0
                    return hold
        return None

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # the block has ended
                return
            _Session(self, client, socket.create_connection(self._target)).start()


class _Session:
    """One client connection and its server connection; when one closes, so does the other."""

    def __init__(self, wire: Wire, client: socket.socket, server: socket.socket):
        self._wire = wire
        self._client = client
        self._server = server
        self._port: int = client.getpeername()[1]
        self._statements: dict[bytes, str] = {}
        self._after: Hold | None = None
        self._over = threading.Event()
        for side in (client, server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        """Both directions, each in a thread of its own."""
        for pump in (self._to_server, self._to_client):
            threading.Thread(target=self._pump, args=(pump,), daemon=True).start()

    def _pump(self, pump: Callable[[], None]) -> None:
        # A killed process closes in the middle of whatever it was saying.
        with contextlib.suppress(OSError, EOFError):
            pump()
        self._over.set()
        for side in (self._client, self._server):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def _to_server(self) -> None:
        (size,) = struct.unpack("!I", _exactly(self._client, 4))
        self._server.sendall(struct.pack("!I", size) + _exactly(self._client, size - 4))
        while True:
            kind, body = _message(self._client)
            sql = self._executed(kind, body)
            hold = self._wire.claim(sql, body, self._port) if sql is not None else None
            if hold is not None and hold.side == "before":
                self._stand_still(hold)
            elif hold is not None:
                self._after = hold
            self._server.sendall(_packed(kind, body))

    def _executed(self, kind: bytes, body: bytes) -> str | None:
        """The statement this message binds or runs; None for every other message."""
        if kind == b"P":
            name, sql = body.split(b"\0", 2)[:2]
            self._statements[name] = sql.decode()
        elif kind == b"B":
            return self._statements.get(body.split(b"\0", 2)[1])
        elif kind == b"Q":
            return body.rstrip(b"\0").decode()
        return None

    def _to_client(self) -> None:
        while True:
            kind, body = _message(self._server)
            # ReadyForQuery: whatever was asked is committed.
            if kind == b"Z" and self._after is not None:
                hold, self._after = self._after, None
                hold.port = self._port
                self._stand_still(hold)
            self._client.sendall(_packed(kind, body))

    def _stand_still(self, hold: Hold) -> None:
        released = False
        while not released:
            released = hold._go.wait(_LOOK_EVERY)
            # Also after the release: a dead process's statement must not be sent on.
            if self._over.is_set() or _has_hung_up(self._client):
                raise EOFError


def _has_hung_up(sock: socket.socket) -> bool:
    # Not by reading: the rest of what it was saying may still lie before the end.
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    return bool(poll.poll(0))


def _packed(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _message(sock: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(sock, 5)
    (size,) = struct.unpack("!I", head[1:])
    return head[:1], _exactly(sock, size - 4)


def _exactly(sock: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = sock.recv(min(size, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
