"""A cursor is short, opaque, of one run, and stands where it was given."""

from __future__ import annotations

import base64
import zlib
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celegraph.errors import CursorInvalid
from celegraph.tasks.stream.cursor import Cursor, parse_cursor

STEPS = st.lists(st.integers(min_value=1, max_value=2**40), max_size=200)
CHUNKS = st.tuples(st.integers(0, 2**40), st.integers(0, 2**40))


def reached(steps: list[int], chunk: tuple[int, int]) -> Cursor:
    cursor = Cursor().with_chunk(chunk)
    for seq in accumulate(steps):
        cursor = cursor.with_event(seq)
    return cursor


@given(STEPS, CHUNKS)
def test_a_cursor_comes_back_as_it_was_and_fits_into_a_header(
    steps: list[int], chunk: tuple[int, int]
) -> None:
    cursor = reached(steps, chunk)

    text = cursor.text("r")

    assert parse_cursor(text, "r") == cursor
    assert len(text) < 2000
    assert text.replace("-", "").replace("_", "").isalnum()


@given(STEPS, st.integers(min_value=1))
def test_an_event_that_was_read_is_not_new_and_every_later_one_is(steps: list[int], more: int) -> None:
    cursor = reached(steps, (0, 0))

    for seq in cursor.seqs:
        assert seq > cursor.look_after
    assert all(seq <= cursor.look_after or seq in cursor.seqs for seq in accumulate(steps))
    assert max([0, *cursor.seqs]) + more > cursor.look_after


@given(st.text(max_size=300))
def test_other_text_is_refused_and_nothing_else_happens(text: str) -> None:
    with pytest.raises(CursorInvalid):
        parse_cursor(text, "r")


def test_what_unpacks_to_very_much_is_refused() -> None:
    bomb = base64.urlsafe_b64encode(zlib.compress(b"[" + b"1," * 100_000 + b"1]", 9)).decode()

    with pytest.raises(CursorInvalid):
        parse_cursor(bomb, "r")


def test_what_nests_deeper_than_python_reads_is_refused() -> None:
    nested = base64.urlsafe_b64encode(zlib.compress(b"[" * 2000 + b"]" * 2000)).decode()

    with pytest.raises(CursorInvalid):
        parse_cursor(nested, "r")


def test_a_cursor_of_another_run_says_so() -> None:
    with pytest.raises(CursorInvalid, match="of another run"):
        parse_cursor(reached([1], (1, 1)).text("a"), "b")
