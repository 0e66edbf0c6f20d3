"""The test's own broker, claiming to be an old Redis."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit


@contextmanager
def claiming_version(url: str, real: str, claimed: str) -> Iterator[str]:
    """The URL of a relay to `url` that changes the version in what the server says."""
    # Replies carry their length in front.
    claim = claimed.ljust(len(real), "0").encode()
    parts = urlsplit(url)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        target = (str(parts.hostname), parts.port or 6379)
        arguments = (listener, target, (real.encode(), claim))
        threading.Thread(target=_relay, args=arguments, daemon=True).start()
        yield urlunsplit(parts._replace(netloc=f":{parts.password}@127.0.0.1:{port}"))
        listener.shutdown(socket.SHUT_RDWR)


def _relay(listener: socket.socket, target: tuple[str, int], change: tuple[bytes, bytes]) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:  # the test is over
            return
        server = socket.create_connection(target)
        for source, sink, edit in ((client, server, (b"", b"")), (server, client, change)):
            threading.Thread(target=_pump, args=(source, sink, edit), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket, change: tuple[bytes, bytes]) -> None:
    old, new = change
    # The other direction's thread may have closed its end first.
    with contextlib.suppress(OSError), source:
        while data := source.recv(1 << 20):
            sink.sendall(data.replace(b"redis_version:" + old, b"redis_version:" + new))
        sink.shutdown(socket.SHUT_WR)
