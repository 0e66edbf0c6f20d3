"""The course of a run as a picture: everything inside it, in order, whatever happened."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from celegraph.contrib.web.timeline import Timeline, draw
from celegraph.ledger.runs import Event, Run

_START = datetime(2024, 2, 29, 12, tzinfo=UTC)
_KINDS = st.sampled_from(
    [
        ("admitted", {}),
        ("leased", {"worker": "w"}),
        ("checkpoint", {"step": 1, "next": ["pay"]}),
        ("effect reserved", {"key": "k", "tool": "pay"}),
        ("effect in doubt", {"key": "k", "tool": "pay"}),
        ("effect sent", {"key": "k", "tool": "pay"}),
        ("waits", {}),
        ("woken", {}),
        ("crashed", {}),
        ("sleeps", {}),
        ("finished", {}),
        ("from a later release", {"x": [1]}),
    ]
)


def _drawn(happened: list[tuple[float, tuple[str, dict[str, Any]]]], ended: bool = False) -> Timeline | None:
    at, events = _START, []
    for seq, (seconds, (kind, data)) in enumerate(happened):
        at += timedelta(seconds=seconds)
        events.append(Event(seq, at, seq, kind, data))
    run = cast(Run, SimpleNamespace(terminal=ended, now=at + timedelta(seconds=1)))
    return draw(events, run, [])


@given(st.lists(st.tuples(st.floats(0, 1e7), _KINDS), min_size=1, max_size=40), st.booleans())
def test_everything_lies_inside_the_picture(happened: list[Any], ended: bool) -> None:
    picture = _drawn(happened, ended)

    assert picture is not None
    for bar in picture.bars:
        assert 0 <= bar.x <= bar.x + bar.width <= picture.width
        assert 0 <= bar.y <= picture.height
    for mark in [*picture.marks, *picture.spans]:
        assert 0 <= mark.x <= picture.width
        assert 0 <= mark.y <= picture.height


def test_crash_doubt_and_wait_are_told_apart() -> None:
    picture = _drawn(
        [
            (0, ("admitted", {})),
            (0.1, ("leased", {"worker": "w1"})),
            (0.2, ("effect reserved", {"key": "k", "tool": "pay"})),
            (1, ("crashed", {})),
            (1, ("leased", {"worker": "w2"})),
            (0.1, ("waits", {})),
        ]
    )

    assert picture is not None
    notes = [bar.note for bar in picture.bars]
    assert [bar.tone for bar in picture.bars] == ["bad", "rest", "doubt"]
    assert notes[0] == "attempt 1 on w1: crashed after 1 s"
    assert notes[2].startswith("pay: not recorded for")
    assert "✕" in [mark.sign for mark in picture.marks]
    assert picture.summary.startswith("2 attempts, 0 checkpoints, 1 crash, 1 effect")


def test_weekend_is_wider_than_a_step_and_does_not_crush_it() -> None:
    step = [(0.05, ("checkpoint", {"step": n})) for n in range(5)]
    picture = _drawn([(0, ("admitted", {})), *step, (200_000, ("woken", {})), *step])

    assert picture is not None
    places = [mark.x for mark in picture.marks]
    gaps = [b - a for a, b in pairwise(places)]
    assert min(gaps) > 4
    assert max(gaps) < 40 * min(gaps)
    assert "2 d 7 h" in [span.sign for span in picture.spans]
