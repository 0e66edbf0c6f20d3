"""The fake provider's process.

    provider_server.py LOG

Says its two ports on standard output: one for clients, one for the test.  Every act is a line in
LOG, on disk before anybody hears of it; nothing else in the tests says how often something happened.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


@dataclass
class Known:
    """What the provider remembers of a key."""

    body: Any
    at: float
    answer: tuple[int, dict[str, Any]]
    busy: bool = False


@dataclass
class Books:
    """Acts, keys and switches; one lock for all."""

    log: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    known: dict[str, Known] = field(default_factory=dict)
    switches: dict[str, Any] = field(default_factory=dict)
    acts: int = 0

    def write(self, **fact: Any) -> None:
        """One line, on disk when this returns."""
        os.write(self.log, json.dumps(fact | {"at": time.time()}).encode() + b"\n")
        os.fsync(self.log)

    def take(self, switch: str) -> Any:
        """The switch's value for this call; a number counts down, True stays."""
        value = self.switches.get(switch)
        if value is not None and not isinstance(value, bool | str | float):
            self.switches[switch] = value - 1
            return value > 0
        return value


class Client(BaseHTTPRequestHandler):
    """What agents see: POST /pay with an Idempotency-Key, GET /acts/<key>.

    POST /act is the same at a provider that does not heed the key: every call acts.
    """

    protocol_version = "HTTP/1.1"
    books: ClassVar[Books]

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        key = self.path.rpartition("/")[2]
        with self.books.lock:
            known = self.books.known.get(key)
        self.answer(200, known.answer[1]) if known else self.answer(404, {"error": "no such key"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers["Idempotency-Key"]
        books = self.books
        if slow := books.take("slow"):
            time.sleep(float(slow))
        if books.take("says_500"):
            self.answer(500, {"error": "not now"})
            return
        with books.lock:
            books.write(kind="call", key=key)
            known = self._remembered(key)
            if known is not None:
                self._repeat(known, body)
                return
            books.acts += 1
            answer = (200, {"id": f"re_{books.acts}", "key": key})
            books.write(kind="act", key=key, body=body, ref=f"re_{books.acts}")
            if books.take("caches_500"):
                answer = (500, {"error": "internal"})
            known = books.known[key] = Known(body, time.monotonic(), answer)
            fails = books.take("acts_then_500")
            hangs, resets = books.take("acts_then_hangs"), books.take("acts_then_resets")
            busy, webhook = books.take("409_while_busy"), books.take("webhook_before_reply")
            known.busy = bool(busy)
        if webhook:
            self._tell(str(webhook), key, str(answer[1].get("id")))
        if busy:
            time.sleep(float(busy))
            known.busy = False
        if hangs:
            self.connection.recv(1)  # until the client hangs up
        elif resets:
            self.reset()
        elif fails:
            self.answer(500, {"error": "internal"})
        else:
            self.answer(*answer)

    def _remembered(self, key: str) -> Known | None:
        known = self.books.known.get(key)
        ttl = self.books.switches.get("key_ttl")
        if known is None or self.books.switches.get("ignores_key") or self.path == "/act":
            return None
        return None if ttl is not None and time.monotonic() - known.at > float(ttl) else known

    def _repeat(self, known: Known, body: Any) -> None:
        if known.busy:
            self.answer(409, {"error": "a request with this key is in progress"})
        elif known.body != body:
            self.answer(422, {"error": "this key was used with another body"})
        else:
            self.answer(*known.answer)

    def _tell(self, url: str, key: str, ref: str) -> None:
        body = json.dumps({"key": key, "ref": ref}).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=10).close()

    def answer(self, status: int, body: dict[str, Any]) -> None:
        """A JSON answer."""
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def reset(self) -> None:
        """Close so that the client sees ECONNRESET."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


class Clients(ThreadingHTTPServer):
    """The clients' side, which can stop listening and listen again on the same port."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """A client that was killed in the middle is what this is for."""


class Desk:
    """The test's side: one JSON object a line, each answered by a line."""

    def __init__(self, books: Books):
        self.books = books
        self.clients: Clients | None = None
        self.port = 0
        self.listen()

    def listen(self) -> None:
        """Accept clients."""
        if self.clients is None:
            self.clients = Clients(("127.0.0.1", self.port), Client)
            self.port = self.clients.server_address[1]
            threading.Thread(target=self.clients.serve_forever, args=(0.01,), daemon=True).start()

    def refuse(self) -> None:
        """From now on connecting is refused."""
        if self.clients is not None:
            self.clients.shutdown()
            self.clients.server_close()
            self.clients = None

    def obey(self, order: dict[str, Any]) -> None:
        """Set switches; `refuses_connect` is about the socket itself."""
        refuses = order.pop("refuses_connect", None)
        if refuses is not None:
            self.refuse() if refuses else self.listen()
        with self.books.lock:
            self.books.switches.update(order)


def main(log: str) -> None:
    books = Books(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    Client.books = books
    desk = Desk(books)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stdout.write(json.dumps({"clients": desk.port, "desk": listener.getsockname()[1]}) + "\n")
        sys.stdout.flush()
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb", buffering=0) as lines:
            for line in lines:
                desk.obey(json.loads(line))
                lines.write(b"done\n")


if __name__ == "__main__":
    main(sys.argv[1])
