"""Reads a run's events and chunks into one order, a step at a time, holding nothing between two steps.

The two sources are ordered by what caused what and never by time: a chunk knows its epoch and step, so it
goes behind the event that leased its attempt and before the checkpoint of its step.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from celegraph.errors import RunNotFound
from celegraph.ledger import runs
from celegraph.ledger.plain import sought
from celegraph.ledger.pool import ledger
from celegraph.ledger.runs import Event
from celegraph.ledger.states import TERMINAL
from celegraph.tasks.installation import Installation
from celegraph.tasks.stream.cursor import Cursor, parse_cursor
from celegraph.tasks.stream.items import StreamItem
from celegraph.tasks.stream.server import CLOSED, Position, StreamUnreachable, server_of

_PAGE = 500
# Seconds.  While chunks flow, PostgreSQL is asked less often than Redis.
_EVENTS_EVERY = 0.25
# Seconds.  The end waits so long for chunks that a worker sent before it and that are still on their way.
_LAST_WORDS = 1.0
# The attempt that wrote one of these says nothing after it.
_ENDS = frozenset({"finished", "failed", "cancelled", "waits", "sleeps", "drained", "crashed", "hung"})
_SAID = ("token", "custom", "progress", "retracted")
_WITHOUT_PLACE = (-1.0, -1.0)


@dataclass(frozen=True)
class _Chunk:
    position: Position
    body: Mapping[str, Any]

    @property
    def place(self) -> tuple[float, float]:
        return (self.position[0], _number(self.body.get("step")))


class RunReader:
    """One listener's place in one run's stream.  Not for two threads at once."""

    def __init__(self, inst: Installation, run_id: str, after: str | None = None):
        if not sought(run_id):
            # Before the chunks' server is asked, which would take the client's error for its own.
            raise RunNotFound(run_id)
        self.run_id = run_id
        self.status: str | None = None
        self.ended = False
        self._inst = inst
        self._server = server_of(inst)
        self._cursor = parse_cursor(after, run_id) if after else Cursor()
        self._events_at = -math.inf
        self._epoch = 0
        self._furthest = _WITHOUT_PLACE
        self._behind = False
        self._deaf = False
        self._give_up_at: float | None = None

    def poll(self) -> list[StreamItem]:
        """What is new, without waiting for more.  `RunNotFound`.  After the end: nothing."""
        return [] if self.ended else list(self._poll())

    def idle(self) -> StreamItem:
        """Nothing is new."""
        return self._item("idle")

    def _poll(self) -> Iterator[StreamItem]:
        # Chunks first: what leased their attempt is committed before they are sent, so then it is read too.
        chunks, lost = self._chunks()
        yield from lost
        # A chunk of a new step comes behind the checkpoint of the last one, so that is read first.
        news = self._behind or any(chunk.place > self._furthest for chunk in chunks)
        if not news and time.monotonic() < self._events_at + _EVENTS_EVERY:
            yield from self._told(chunks)
            return
        events, complete = self._events()
        self._behind = not complete
        last = self._last_event(events) if complete and self.status in TERMINAL else None
        if last is not None and not self._all_said(chunks):
            # The end itself is read again with the next poll.
            events = events[:last]
            last = None
        for event in events:
            yield from self._told(_pop_before(chunks, _place(event)))
            yield self._event(event)
        if complete:
            yield from self._told(chunks)
        if last is not None:
            self.ended = True
            yield self._item("end", {"status": self.status})

    # -- PostgreSQL ----------------------------------------------------------------------------------

    def _events(self) -> tuple[list[Event], bool]:
        """New events, and whether there are no more."""
        self._events_at = time.monotonic()
        with ledger(self._inst.config) as conn:
            self.status, found = runs.news(
                conn, self.run_id, after=self._cursor.look_after, limit=_PAGE + len(self._cursor.seqs)
            )
        complete = len(found) < _PAGE + len(self._cursor.seqs)
        self._epoch = max([self._epoch, *(event.epoch or 0 for event in found)])
        return [event for event in found if event.seq not in self._cursor.seqs], complete

    @staticmethod
    def _last_event(events: list[Event]) -> int:
        """Where the run's end begins among the new events; behind them when it was read before."""
        ends = [i for i, event in enumerate(events) if event.kind in TERMINAL]
        return ends[-1] if ends else len(events)

    def _event(self, event: Event) -> StreamItem:
        self._cursor = self._cursor.with_event(event.seq)
        step = event.data.get("step") if event.kind == "checkpoint" else None
        data = {**event.data, "event": event.kind, "seq": event.seq, "at": event.at.isoformat()}
        return self._item("event", data, epoch=event.epoch, step=step)

    # -- Redis ---------------------------------------------------------------------------------------

    def _chunks(self) -> tuple[list[_Chunk], list[StreamItem]]:
        if self._server is None:
            return [], []
        lost: list[StreamItem] = []
        try:
            if self._server.resting:
                raise StreamUnreachable("resting")
            found = self._server.read(self.run_id, self._cursor.chunk, _PAGE)
        except StreamUnreachable:
            if not self._deaf:
                lost.append(self._item("lost", {"chunks": None, "why": "the chunks' server does not answer"}))
            self._deaf = True
            return [], lost
        self._deaf = False
        return [_Chunk(position, _body(text)) for position, text in found], lost

    def _all_said(self, chunks: list[_Chunk]) -> bool:
        """Nothing more is to come from the run's last attempt, or it has been waited for."""
        if self._server is None or self._deaf:
            return True
        if self._give_up_at is None:
            self._give_up_at = time.monotonic() + _LAST_WORDS
        try:
            newest = self._server.newest(self.run_id)
        except StreamUnreachable:
            return True
        read = chunks[-1].position if chunks else self._cursor.chunk
        if newest is None:
            return True
        position, closed = newest
        if len(chunks) == _PAGE and read < position:
            return False
        said = closed and read >= position and position[0] >= self._epoch
        return said or (read >= position and time.monotonic() > self._give_up_at)

    def _told(self, chunks: list[_Chunk]) -> Iterator[StreamItem]:
        for chunk in chunks:
            missing = self._missing(chunk.position)
            self._cursor = self._cursor.with_chunk(chunk.position)
            self._furthest = max(self._furthest, chunk.place)
            if missing:
                yield self._item("lost", {"chunks": missing, "why": "dropped on the way"})
            if chunk.body.get("kind") != CLOSED:
                yield self._chunk(chunk)

    def _missing(self, position: Position) -> int:
        """How many numbers of this chunk's attempt were skipped before it."""
        epoch, number = self._cursor.chunk
        return position[1] - 1 - (number if position[0] == epoch else 0)

    def _chunk(self, chunk: _Chunk) -> StreamItem:
        body = chunk.body
        data = body.get("data")
        kind = body.get("kind")
        return self._item(
            kind if kind in _SAID else "custom",
            data if isinstance(data, dict) else {"value": data},
            epoch=chunk.position[0],
            step=body.get("step"),
            node=body.get("node"),
            task=body.get("task"),
            attempt=body.get("attempt"),
        )

    def _item(self, kind: str, data: Mapping[str, Any] | None = None, **where: Any) -> StreamItem:
        return StreamItem(kind, self._cursor.text(self.run_id), data or {}, **where)


def _pop_before(chunks: list[_Chunk], place: tuple[float, float]) -> list[_Chunk]:
    """Take from the front what belongs before this place."""
    count = 0
    while count < len(chunks) and chunks[count].place <= place:
        count += 1
    taken = chunks[:count]
    del chunks[:count]
    return taken


def _place(event: Event) -> tuple[float, float]:
    """Chunks up to here were said before this event."""
    if event.kind == "leased":
        return (_number(event.epoch) - 1, math.inf)
    if event.kind == "checkpoint" and "ns" not in event.data:
        return (_number(event.epoch), _number(event.data.get("step")))
    if event.kind in _ENDS:
        return (_number(event.epoch, math.inf), math.inf)
    return _WITHOUT_PLACE


def _number(value: object, otherwise: float = -1.0) -> float:
    return float(value) if isinstance(value, int | float) else otherwise


def _body(text: str) -> Mapping[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    # Somebody else's entry under our key, or one that was cut: shown as what it is.
    return body if isinstance(body, dict) else {"kind": "custom", "data": None}
