"""`stream_run` and `astream_run`: follow a run while it works, from any process of the host."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

from celegraph.tasks.installation import installation
from celegraph.tasks.stream.items import StreamItem
from celegraph.tasks.stream.reader import RunReader

# Seconds between two looks: at once after something happened, then less and less often.
_SHORTEST = 0.05
_LONGEST = 0.5
_GROWTH = 1.5
# While a run rests only a person, a provider or a clock can move it.
_LONGEST_AT_REST = 1.0
_RESTING = frozenset({"waiting", "paused", "quarantined"})
# As many as the ledger's pool has connections.
_THREADS = 8


class _Pace:
    """How long to wait for the next look, and when to say that nothing has happened."""

    def __init__(self, reader: RunReader, idle: float | None):
        self._reader = reader
        self._idle = idle
        self._pause = _SHORTEST
        self._told_at = time.monotonic()

    def heard(self, items: list[StreamItem]) -> list[StreamItem]:
        """What to pass on: the items, or after a long silence a word about it."""
        now = time.monotonic()
        if not items and self._idle is not None and now >= self._told_at + self._idle:
            items = [self._reader.idle()]
            self._told_at = now
        elif items:
            self._pause, self._told_at = _SHORTEST, now
        return items

    def pause(self) -> float:
        """Seconds until the next look."""
        pause = self._pause
        longest = _LONGEST_AT_REST if self._reader.status in _RESTING else _LONGEST
        self._pause = min(self._pause * _GROWTH, longest)
        return min(pause, self._idle) if self._idle is not None else pause


def stream_run(run_id: str, after: str | None = None, *, idle: float | None = None) -> Iterator[StreamItem]:
    """Everything that happens to the run, as it happens, until it has ended; then an item of kind "end".

    `after`: the cursor of the last item seen; nothing is repeated and no event is missed.  `idle`: an item
    of kind "idle" after so many seconds without another.  Waits in the caller's thread, for days if the
    run waits for days.  Raises `RunNotFound`, `CursorInvalid`.
    """
    reader = RunReader(installation(), run_id, after)
    return _following(reader, reader.poll(), idle)


def _following(reader: RunReader, items: list[StreamItem], idle: float | None) -> Iterator[StreamItem]:
    pace = _Pace(reader, idle)
    while True:
        yield from pace.heard(items)
        if reader.ended:
            return
        time.sleep(pace.pause())
        items = reader.poll()


def astream_run(
    run_id: str, after: str | None = None, *, idle: float | None = None
) -> AsyncIterator[StreamItem]:
    """As `stream_run`, for an event loop: a listener that waits holds neither a thread nor a connection."""
    return _afollowing(RunReader(installation(), run_id, after), idle)


async def _afollowing(reader: RunReader, idle: float | None) -> AsyncIterator[StreamItem]:
    loop = asyncio.get_running_loop()
    pace = _Pace(reader, idle)
    while True:
        for item in pace.heard(await loop.run_in_executor(_executor(), reader.poll)):
            yield item
        if reader.ended:
            return
        await asyncio.sleep(pace.pause())


_executors: dict[int, ThreadPoolExecutor] = {}


def _executor() -> ThreadPoolExecutor:
    """Threads of our own: a server that does not answer shall not occupy the host's."""
    pid = os.getpid()
    if pid not in _executors:
        _executors[pid] = ThreadPoolExecutor(_THREADS, thread_name_prefix="celegraph-listen")
    return _executors[pid]
