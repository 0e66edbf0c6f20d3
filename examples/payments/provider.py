"""A Stripe-shaped payment provider for trying the agent: it refunds charges and keeps its own log.

    python -m examples.payments.provider --log refunds.jsonl --port 4242

POST /v1/refunds acts once per Idempotency-Key: the same key and body get the first answer again, another
body 400 `idempotency_error`, a request beside its twin 409.  Each refund is a line in the log, on the
disk before anybody hears of it.  Charges are what you name them; `ch_<cents>` can be refunded up to that.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Answer = tuple[int, dict[str, Any]]


@dataclass
class Known:
    """What is remembered of a key; no answer yet while its first request is at work."""

    body: Any
    answer: Answer | None = None


@dataclass
class Books:
    """Refunds, keys, and the log."""

    log: Path
    hold: Path
    lock: threading.Lock = field(default_factory=threading.Lock)
    keys: dict[str, Known] = field(default_factory=dict)
    refunded: dict[str, int] = field(default_factory=dict)

    def begin(self, key: str, body: Any) -> Answer | None:
        """The answer for a key that is known; None: this request is the first."""
        with self.lock:
            known = self.keys.get(key)
            if known is None:
                self.keys[key] = Known(body)
                return None
        if known.body != body:
            return _error(400, "idempotency_error", "this key was used with other parameters")
        if known.answer is None:
            return _error(409, "idempotency_error", "a request with this key is at work")
        return known.answer

    def refund(self, key: str, body: dict[str, Any]) -> Answer:
        """Act, and remember the answer under the key."""
        with self.lock:
            answer = self._refund(key, body)
            self.keys[key].answer = answer
        return answer

    def _refund(self, key: str, body: dict[str, Any]) -> Answer:
        charge, cents = str(body.get("charge")), body.get("amount")
        if not charge.startswith("ch_") or not charge[3:].isdigit():
            return _error(404, "invalid_request_error", f"No such charge: {charge}")
        if not isinstance(cents, int) or cents <= 0:
            return _error(400, "invalid_request_error", "amount must be a positive whole number")
        done = self.refunded.get(charge, 0)
        if done + cents > int(charge[3:]):
            return _error(402, "card_error", f"{charge} has only {int(charge[3:]) - done} left to refund")
        self.refunded[charge] = done + cents
        refund = {"id": f"re_{len(self.keys)}", "object": "refund", "charge": charge, "amount": cents}
        self._write({**refund, "key": key, "metadata": body.get("metadata")})
        return 200, {**refund, "status": "succeeded"}

    def _write(self, line: dict[str, Any]) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")
            log.flush()
            os.fsync(log.fileno())


class Desk(BaseHTTPRequestHandler):
    """What clients see."""

    protocol_version = "HTTP/1.1"
    server: Provider

    def log_message(self, *_: object) -> None:
        """Quiet: the log of refunds is what counts."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        books, key = self.server.books, self.headers.get("Idempotency-Key", "")
        if self.path != "/v1/refunds":
            self._say(_error(404, "invalid_request_error", f"no such page: {self.path}"))
        elif not self.headers.get("Authorization", "").startswith("Bearer "):
            self._say(_error(401, "invalid_request_error", "no API key"))
        elif not key:
            self._say(_error(400, "invalid_request_error", "no Idempotency-Key"))
        else:
            body = json.loads(raw)
            answer = books.begin(key, body)
            if answer is None:
                answer = books.refund(key, body)
                if books.hold.exists():
                    # Done, and nobody is told: the place where a process dies in tests.
                    self.connection.recv(1)
            self._say(answer)

    def _say(self, answer: Answer) -> None:
        data = json.dumps(answer[1]).encode()
        self.send_response(answer[0])
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Provider(ThreadingHTTPServer):
    """The provider, serving; `hold` is a file during whose existence refunds are made and not answered."""

    daemon_threads = True

    def __init__(self, log: Path, port: int = 0):
        super().__init__(("127.0.0.1", port), Desk)
        self.books = Books(log, log.with_name(log.name + ".hold"))

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: object) -> None:
        """A client that went away: its answer is kept under its key."""


def _error(status: int, kind: str, message: str) -> Answer:
    return status, {"error": {"type": kind, "message": message}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.payments.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=4242)
    parser.add_argument("--log", type=Path, required=True, help="JSON lines, one per refund")
    options = parser.parse_args()
    Provider(options.log, options.port).serve_forever()


if __name__ == "__main__":
    main()
