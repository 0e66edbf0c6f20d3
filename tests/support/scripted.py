"""A local server that behaves badly on purpose, one script per connection, in a thread of the test."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.waiting import eventually

Script = Callable[["Conversation"], None]


@dataclass
class Conversation:
    """One accepted connection."""

    sock: socket.socket
    server: Scripted

    def read_until(self, end: bytes) -> bytes:
        """What the client says, up to and with `end`; less when it hangs up."""
        said = b""
        while end not in said and (more := self.sock.recv(65536)):
            said += more
        return said

    def read_request(self) -> bytes:
        """A whole HTTP request with a Content-Length."""
        said = self.read_until(b"\r\n\r\n")
        head, _, body = said.partition(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if b"content-length" in line]
        missing = int(lengths[0]) - len(body) if lengths else 0
        while missing > 0 and (more := self.sock.recv(65536)):
            said, missing = said + more, missing - len(more)
        return said

    def act(self) -> None:
        """The world has changed now."""
        self.server.acts += 1

    def say(self, text: str | bytes) -> None:
        """To the client."""
        self.sock.sendall(text if isinstance(text, bytes) else text.encode())

    def answer(self, status: int, body: str = "{}", **headers: str) -> None:
        """An HTTP answer; the connection ends after it."""
        lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body.encode())}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.say("\r\n".join([*lines, "", body]))

    def reset(self) -> None:
        """Close so that the client sees ECONNRESET."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def hang(self) -> None:
        """Say nothing until the client gives up."""
        with contextlib.suppress(OSError):
            while self.sock.recv(65536):
                pass


@dataclass
class Scripted:
    """The server as the test sees it: `acts` is what it did, `port` where it listens."""

    scripts: list[Script]
    listener: socket.socket
    tls: ssl.SSLContext | None = None
    acts: int = 0
    met: int = field(default=0)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.listener.getsockname()[1])

    def url(self, path: str = "/pay") -> str:
        """Its address."""
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}{path}"

    def serve(self) -> None:
        """One connection after the other; the last script goes on for ever."""
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return  # closed: the test is over, or it shall refuse from now on
            script = self.scripts[min(self.met, len(self.scripts) - 1)]
            self.met += 1
            with contextlib.suppress(OSError), contextlib.closing(sock):
                wrapped = self.tls.wrap_socket(sock, server_side=True) if self.tls else sock
                script(Conversation(wrapped, self))

    def refuse(self) -> None:
        """From now on connecting is refused."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@contextmanager
def scripted(*scripts: Script, tls: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    """A server whose n-th connection is played by the n-th script."""
    server = Scripted(list(scripts), socket.create_server(("127.0.0.1", 0)), tls)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.refuse()
        eventually(lambda: not thread.is_alive())


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def full_backlog() -> Iterator[int]:
    """A port that answers no SYN any more: connecting to it times out."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = int(listener.getsockname()[1])
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield port
