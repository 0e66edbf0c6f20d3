"""The course of a run as a picture: lanes of attempts, steps, effects and waits over the time.

From events to coordinates; the template only writes them out.  The axis is squeezed: a step of 50 ms and
a weekend of waiting are both visible, and what the widths hide is written below them.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from celegraph.contrib.web.course import ENDS, Span, attempts_of, calls_of, how_long, questions_of, rests_of
from celegraph.contrib.web.shown import one_line
from celegraph.ledger.runs import Event, Run

_LEFT = 84.0  # the lanes' names
_RIGHT = 26.0
_NARROWEST = 1000.0
_ROW = 20.0
_MOST_ROWS = 6
_AXIS = 22.0

_SIGNS = {"crashed": "✕", "hung": "✕", "failed": "✕", "finished": "✓", "cancelled": "⊘", "abandoned": "↯"}


@dataclass(frozen=True)
class Bar:
    """Something that lasted.  `tone` is a class of the style sheet; `note` is read out and shown on hover."""

    x: float
    y: float
    width: float
    tone: str
    label: str
    note: str

    @property
    def outside(self) -> bool:
        """The label does not fit into the bar and stands behind it."""
        return _label_width(self.label) + 8 > self.width


@dataclass(frozen=True)
class Mark:
    """Something that happened."""

    x: float
    y: float
    sign: str
    tone: str
    note: str


@dataclass(frozen=True)
class Lane:
    """A name beside its rows."""

    name: str
    y: float
    height: float


@dataclass
class Timeline:
    """Coordinates for an SVG of `width` by `height`; `summary` says it in words."""

    width: float
    height: float
    summary: str
    lanes: list[Lane] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    spans: list[Mark] = field(default_factory=list)


def draw(events: Sequence[Event], run: Run, questions: Sequence[Mapping[str, Any]]) -> Timeline | None:
    """The picture of these events; None for a run without any."""
    if not events:
        return None
    end = events[-1].at if run.terminal else max(run.now or events[-1].at, events[-1].at)
    axis = _Axis([event.at for event in events] + [end])
    attempts = list(attempts_of(events, end))
    calls = list(calls_of(events, end))
    waits = [*questions_of(questions, events[0].at, end), *rests_of(events, end)]
    picture = Timeline(axis.width, 0, _summary(events, attempts, calls, waits, end))
    y = 6.0
    for name, spans in (("attempts", attempts), ("steps", []), ("effects", calls), ("waits", waits)):
        rows = _packed(axis, spans)
        height = max(1, min(len(rows), _MOST_ROWS)) * _ROW
        picture.lanes.append(Lane(name, y, height))
        for row, placed in enumerate(rows[:_MOST_ROWS]):
            picture.bars += [_bar(axis, span, y + row * _ROW) for span in placed]
        picture.marks += list(_marks(name, events, axis, y))
        y += height + 8
    picture.spans = _distances(axis, y + 10)
    picture.height = y + _AXIS
    return picture


class _Axis:
    """From an instant to a place: between two events as far as the logarithm of the time between them."""

    def __init__(self, times: Sequence[datetime]):
        self.times = sorted(times)
        widths = [_width(b, a) for a, b in zip(self.times, self.times[1:], strict=False)]
        stretch = max(1.0, (_NARROWEST - _LEFT - _RIGHT) / (sum(widths) or 1))
        self.places = [_LEFT]
        for width in widths:
            self.places.append(self.places[-1] + width * stretch)
        self.width = self.places[-1] + _RIGHT

    def __call__(self, at: datetime) -> float:
        after = bisect_right(self.times, at)
        if after == 0:
            return self.places[0]
        if after == len(self.times):
            return self.places[-1]
        a, b = self.times[after - 1], self.times[after]
        part = (at - a) / (b - a) if b > a else 0.0
        return self.places[after - 1] + part * (self.places[after] - self.places[after - 1])


def _width(later: datetime, earlier: datetime) -> float:
    milliseconds = max(0.0, (later - earlier).total_seconds() * 1000)
    return 3 + min(80.0, 11 * math.log10(1 + milliseconds / 10))


def _packed(axis: _Axis, spans: Iterable[Span]) -> list[list[Span]]:
    """Spans that overlap in different rows."""
    rows: list[list[Span]] = []
    ends: list[float] = []
    for span in sorted(spans, key=lambda one: one.start):
        start = axis(span.start)
        needs = max(axis(span.end), start + 3) + 4
        if _label_width(span.label) + 8 > needs - start:
            needs += _label_width(span.label) + 8
        free = next((row for row, taken in enumerate(ends) if taken <= start), None)
        if free is None:
            rows.append([])
            ends.append(0)
            free = len(rows) - 1
        rows[free].append(span)
        ends[free] = needs
    return rows


def _label_width(label: str) -> float:
    return len(label) * 6.4


def _bar(axis: _Axis, span: Span, y: float) -> Bar:
    x = axis(span.start)
    return Bar(round(x, 1), y, round(max(3.0, axis(span.end) - x), 1), span.tone, span.label, span.note)


# -- what happened -------------------------------------------------------------------------------------


def _marks(lane: str, events: Sequence[Event], axis: _Axis, y: float) -> Iterable[Mark]:
    for event in events:
        x, at = round(axis(event.at), 1), y + _ROW / 2
        if (
            lane == "attempts"
            and event.kind in _SIGNS
            and (event.epoch is not None or event.kind == "cancelled")
        ):
            yield Mark(x + 9, at, _SIGNS[event.kind], ENDS[event.kind], event.kind)
        elif lane == "steps" and event.kind == "checkpoint" and "ns" not in event.data:
            following = ", ".join(str(name) for name in event.data.get("next") or ())
            note = f"step {event.data.get('step')} done" + (
                f"; next: {one_line(following)}" if following else ""
            )
            yield Mark(x, at, "●", "step", note)
        elif lane == "effects" and event.kind in ("effect deduplicated", "effect drifted", "read recorded"):
            yield Mark(x, at, "◆", "step", f"{one_line(event.data.get('tool', ''), 40)}: {event.kind}")


def _distances(axis: _Axis, y: float) -> list[Mark]:
    """How long the wide gaps really are."""
    found, free = [], 0.0
    for (a, b), (x, end) in zip(
        zip(axis.times, axis.times[1:], strict=False),
        zip(axis.places, axis.places[1:], strict=False),
        strict=True,
    ):
        text = how_long(a, b)
        middle = (x + end) / 2
        if (b - a).total_seconds() >= 1 and middle - _label_width(text) / 2 >= free:
            found.append(Mark(round(middle, 1), y, text, "span", ""))
            free = middle + _label_width(text) / 2 + 6
    return found


def _some(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _summary(
    events: Sequence[Event],
    attempts: Sequence[Span],
    calls: Sequence[Span],
    waits: Sequence[Span],
    end: datetime,
) -> str:
    steps = sum(event.kind == "checkpoint" and "ns" not in event.data for event in events)
    deaths = sum(event.kind in ("crashed", "hung") for event in events)
    parts = [
        _some(len(attempts), "attempt"),
        _some(steps, "checkpoint"),
        _some(deaths, "crash", "crashes") if deaths else "",
        _some(len(calls), "effect"),
        _some(len(waits), "wait"),
    ]
    return f"{', '.join(part for part in parts if part)} in {how_long(events[0].at, end)}"
