"""What a person reads is what they approve: nothing in it hides or reorders the rest."""

from __future__ import annotations

import pytest

from celegraph.tasks.words import visible


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\u202e", "\\u202e"),
        ("\u061c", "\\u061c"),
        ("\u2066", "\\u2066"),
        ("\xad", "\\u00ad"),
        ("\u3164", "\\u3164"),
        ("\U000e0041", "\\U000e0041"),
        ("\r", "\\u000d"),
        ("\x1b", "\\u001b"),
    ],
)
def test_what_cannot_be_seen_is_written_out(hidden: str, shown: str) -> None:
    assert visible(f"pay{hidden}ada") == f"pay{shown}ada"


@pytest.mark.parametrize("text", ["a\tb\nc", "نعم", "می‌خواهم", "👩‍👧", "l'été\xa0!"])
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
