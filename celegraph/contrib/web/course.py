"""What lasted in the course of a run: its attempts, calls, questions and rests, out of its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from celegraph.contrib.web.shown import one_line
from celegraph.ledger.runs import Event
from celegraph.tasks.words import span as span_of

# How an attempt ended, by the event that ended it.
ENDS = {
    "finished": "good",
    "waits": "rest",
    "sleeps": "rest",
    "drained": "rest",
    "abandoned": "lost",
    "failed": "bad",
    "cancelled": "bad",
    "crashed": "bad",
    "hung": "bad",
}


@dataclass(frozen=True)
class Span:
    """Something that lasted; `tone` says how it went."""

    start: datetime
    end: datetime
    tone: str
    label: str
    note: str


def attempts_of(events: Sequence[Event], end: datetime) -> Iterable[Span]:
    """From each lease to what ended it."""
    number, start, worker = 0, None, ""
    for event in events:
        if event.kind == "leased":
            number, start, worker = event.epoch or number + 1, event.at, str(event.data.get("worker", ""))
        elif start is not None and event.kind in ENDS and event.epoch is not None:
            said = f"attempt {number} on {worker}: {event.kind} after {how_long(start, event.at)}"
            yield Span(start, event.at, ENDS[event.kind], "", said)
            start = None
    if start is not None:
        yield Span(start, end, "live", "", f"attempt {number} on {worker}, for {how_long(start, end)}")


_CALL_ENDS = {
    "effect sent": "good",
    "effect failed": "bad",
    "effect resolved": "good",
    "effect dropped": "lost",
}


def calls_of(events: Sequence[Event], end: datetime) -> Iterable[Span]:
    """From each reservation to the record of what came of it."""
    begun: dict[str, tuple[datetime, str, bool]] = {}
    for event in events:
        key, tool = str(event.data.get("key", "")), one_line(event.data.get("tool", ""), 24)
        if event.kind in ("effect reserved", "effect claimed", "effect enqueued"):
            begun.setdefault(key, (event.at, tool, False))
        elif event.kind == "effect in doubt" and key in begun:
            begun[key] = (begun[key][0], tool, True)
        elif event.kind in _CALL_ENDS and key in begun:
            start, tool, doubted = begun.pop(key)
            tone = "bad" if event.data.get("status") == "failed" else _CALL_ENDS[event.kind]
            said = f"{tool}: {event.kind.removeprefix('effect ')} after {how_long(start, event.at)}"
            yield Span(start, event.at, tone, tool, said + (", it was in doubt" if doubted else ""))
    for start, tool, _ in begun.values():
        yield Span(start, end, "doubt", tool, f"{tool}: not recorded for {how_long(start, end)}")


def questions_of(questions: Sequence[Mapping[str, Any]], first: datetime, end: datetime) -> Iterable[Span]:
    """From the asking to the answer, as far as it lies behind the first event that is drawn."""
    for question in questions:
        until = question["decided_at"] or end
        if until < first:
            continue
        tone = {"approved": "good", "rejected": "bad", "expired": "bad"}.get(question["status"], "rest")
        by = f" by {one_line(question['decided_by'], 40)}" if question["decided_by"] else ""
        label = one_line(question["tool"] or question["kind"], 24)
        after = how_long(question["created_at"], until)
        said = f"question about {label}: {question['status']}{by} after {after}"
        yield Span(max(first, question["created_at"]), until, tone, label, said)


def rests_of(events: Sequence[Event], end: datetime) -> Iterable[Span]:
    """Sleeps and pauses."""
    begun: tuple[datetime, str] | None = None
    for event in events:
        if begun is not None and event.kind in ("leased", "woken", "resumed", "cancelled"):
            yield Span(begun[0], event.at, "rest", begun[1], f"{begun[1]} for {how_long(begun[0], event.at)}")
            begun = None
        if event.kind in ("sleeps", "paused"):
            begun = event.at, event.kind
    if begun is not None:
        yield Span(begun[0], end, "rest", begun[1], f"{begun[1]} for {how_long(begun[0], end)}")


def how_long(a: datetime, b: datetime) -> str:
    """The time between, for people."""
    seconds = max(0.0, (b - a).total_seconds())
    return span_of(seconds) if seconds >= 1 else f"{round(seconds * 1000)} ms"
