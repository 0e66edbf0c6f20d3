"""Takes chunks from attempts and sends them from a thread of its own.  An attempt never waits for it.

What cannot be sent in time is dropped, the oldest first, and shows: every chunk has its number.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque

from celegraph.agent.stream import Chunk
from celegraph.ledger.runs import Run
from celegraph.tasks.installation import Installation
from celegraph.tasks.stream.server import CLOSED, Entry, StreamServer, StreamUnreachable, server_of

logger = logging.getLogger("celegraph")

# What may lie here while the server does not answer: together no more than this, of all runs.
_MAX_ENTRIES = 4096
_MAX_BYTES = 4 * 1024 * 1024
# A single chunk; what is larger belongs into the run's state.
_MAX_CHUNK = 64 * 1024
_BATCH = 200
# Seconds to the next try when the server does not answer; the last one stays.
_PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)


class Publisher:
    """One per process; its thread starts with the first chunk and dies with the process."""

    def __init__(self, server: StreamServer):
        self._server = server
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._sending = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def offer(self, entry: Entry) -> int:
        """Take the entry; returns how many older ones had to go for it.  Waits for nobody."""
        dropped = 0
        with self._changed:
            self._entries.append(entry)
            self._bytes += len(entry.body)
            while len(self._entries) > _MAX_ENTRIES or self._bytes > _MAX_BYTES:
                self._bytes -= len(self._entries.popleft().body)
                dropped += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._send, name="celegraph-stream", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return dropped

    def flush(self, seconds: float) -> bool:
        """Wait until everything is sent; False when it is not after so long."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._entries and not self._sending, seconds)

    def _send(self) -> None:
        failures = 0
        while True:
            batch = self._take()
            try:
                self._server.append(batch)
                failures = 0
            except StreamUnreachable as error:
                if failures == 0:
                    logger.warning("chunks are not sent, runs go on", extra={"error": str(error)})
                failures += 1
                self._put_back(batch)
                time.sleep(_PAUSES[min(failures, len(_PAUSES)) - 1])
            self._done()

    def _take(self) -> list[Entry]:
        with self._changed:
            self._changed.wait_for(lambda: self._entries)
            batch = [self._entries.popleft() for _ in range(min(_BATCH, len(self._entries)))]
            self._bytes -= sum(len(entry.body) for entry in batch)
            self._sending = True
            return batch

    def _put_back(self, batch: list[Entry]) -> None:
        """To the front, as far as there is room: sent twice is refused by the server, not told twice."""
        with self._changed:
            while batch and len(self._entries) < _MAX_ENTRIES and self._bytes < _MAX_BYTES:
                entry = batch.pop()
                self._entries.appendleft(entry)
                self._bytes += len(entry.body)

    def _done(self) -> None:
        with self._changed:
            self._sending = False
            self._changed.notify_all()


class AttemptSink:
    """One attempt's way to the publisher; numbers its chunks."""

    def __init__(self, publisher: Publisher, run: Run):
        self._publisher = publisher
        self._run = run
        self._number = 0
        self._closed = False
        self._lock = threading.Lock()

    def put(self, chunk: Chunk) -> None:
        """See `agent.stream.Sink`.  A chunk that is too large takes a number and is not sent."""
        body = {
            "kind": chunk.kind,
            "step": chunk.step,
            "node": chunk.node,
            "task": chunk.task,
            "attempt": chunk.attempt,
            "data": chunk.data,
        }
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        with self._lock:
            if not self._closed:
                self._offer(text if len(text) <= _MAX_CHUNK else None)

    def close(self) -> None:
        """See `agent.stream.Sink`."""
        with self._lock:
            # An attempt that has said nothing needs no end: no key for it.
            if not self._closed and self._number:
                self._offer(json.dumps({"kind": CLOSED}))
            self._closed = True

    def _offer(self, body: str | None) -> None:
        # Under the lock: the server takes numbers in their order only.
        self._number += 1
        if body is not None:
            self._publisher.offer(Entry(self._run.run_id, (self._run.epoch, self._number), body))


_publishers: dict[tuple[int, Installation], Publisher] = {}
_publishers_lock = threading.Lock()


def _renew_lock() -> None:
    # A thread of the parent may have had it at the moment of the fork; in the child nobody frees it.
    global _publishers_lock
    _publishers_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def sink_of(inst: Installation, run: Run) -> AttemptSink | None:
    """Where an attempt's chunks go; None when there is nothing to carry them."""
    server = server_of(inst)
    if server is None:
        return None
    key = (os.getpid(), inst)
    with _publishers_lock:
        if key not in _publishers:
            _publishers[key] = Publisher(server)
        return AttemptSink(_publishers[key], run)


def flush_all(seconds: float) -> None:
    """Before a process ends: the last words of runs that have just finished, if the server takes them."""
    until = time.monotonic() + seconds
    for (pid, _), publisher in list(_publishers.items()):
        if pid == os.getpid():
            publisher.flush(max(0.0, until - time.monotonic()))
