"""The fake provider: its own process with its own log, the only truth about what has happened."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.process import Process
from tests.support.waiting import eventually


@dataclass(frozen=True)
class Act:
    """Something the provider has done in the world."""

    key: str
    body: Any
    ref: str
    at: float


class FakeProvider(Process):
    """POST {url}/pay with an Idempotency-Key acts once per key; GET {url}/acts/<key> tells.
    POST {url}/act acts at every call, whatever its key.

    `switch(name=value)`; a whole number n concerns the next n first calls of a key, True all:
    `acts_then_hangs`, `acts_then_resets`, `acts_then_500` (and knows better when asked again),
    `caches_500` (it acts and says 500 for ever), `ignores_key` (every call acts), `refuses_connect` (until
    switched off), `busy_409` (acts, answers after so many seconds and says 409 to the same key meanwhile),
    `says_500` (at any call, without acting), `slow` (seconds before any call is looked at),
    `webhook_before_reply` (a URL that is told key and ref first), `key_ttl` (seconds it remembers a key).
    """

    def __init__(self, directory: Path, env: Mapping[str, str]):
        self._acts_path = directory / "acts.jsonl"
        words = ["-m", "tests.support.provider_server", str(self._acts_path)]
        super().__init__("provider", words, log=directory / "provider.log", env=env)
        self._desk: socket.socket | None = None

    def start(self) -> None:
        """Start it and take a seat at its desk."""
        super().start()
        ports = eventually(self._ports)
        self.url = f"http://127.0.0.1:{ports['clients']}"
        self._desk = socket.create_connection(("127.0.0.1", ports["desk"]))

    def kill(self) -> None:
        """End it; its log stays."""
        if self._desk is not None:
            self._desk.close()
        super().kill()

    def is_ready(self) -> bool:
        """It has said its ports."""
        return bool(self._ports())

    def _ports(self) -> dict[str, int]:
        first, newline, _ = self.log.partition("\n")
        return dict(json.loads(first)) if newline else {}

    def switch(self, *, busy_409: float | None = None, **switches: object) -> None:
        """In force when this returns; None or False switches off."""
        orders = dict(switches)
        if busy_409 is not None:
            orders["409_while_busy"] = float(busy_409)
        assert self._desk is not None
        self._desk.sendall(json.dumps(orders).encode() + b"\n")
        assert self._desk.recv(16) == b"done\n"

    def acts(self) -> list[Act]:
        """Everything it has done, in order."""
        lines = self._lines()
        return [Act(f["key"], f["body"], f["ref"], f["at"]) for f in lines if f["kind"] == "act"]

    def acts_of(self, run_id: str) -> list[Act]:
        """What it has done for one run, by the run_id in the body."""
        return [act for act in self.acts() if act.body.get("run_id") == run_id]

    def calls(self, key: str) -> int:
        """How often it was asked to act under this key."""
        return sum(f["kind"] == "call" and f["key"] == key for f in self._lines())

    def doubled(self) -> dict[str, int]:
        """Keys under which it acted more than once."""
        return {key: n for key, n in Counter(act.key for act in self.acts()).items() if n > 1}

    def _lines(self) -> list[dict[str, Any]]:
        if not self._acts_path.exists():
            return []
        text = self._acts_path.read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
