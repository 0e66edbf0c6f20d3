"""Arguments in a form: what is not touched stays equal, what is edited keeps its type."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celegraph.contrib.web.editing import edit_fields, edited
from celegraph.contrib.web.problems import Unfit

_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_VALUES = (
    _PLAIN
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.dates()
    | st.times()
    | st.uuids()
    | st.binary()
)


@given(st.dictionaries(st.text(min_size=1), _VALUES))
def test_form_sent_back_as_it_was_changes_nothing(args: dict[str, Any]) -> None:
    form = {field.name: field.text.replace("\n", "\r\n") for field in edit_fields(args)}

    with pytest.raises(Unfit, match="No argument was changed"):
        edited(args, form)


@pytest.mark.parametrize(
    ("before", "typed", "after"),
    [
        ("a", "19", "19"),
        (1, " 19 ", 19),
        (True, "false", False),
        (1.5, "2", 2.0),
        (Decimal("1.10"), "1.20", Decimal("1.20")),
        (date(2024, 2, 29), "2024-03-01", date(2024, 3, 1)),
        (time(8), "09:30", time(9, 30)),
        (
            datetime.fromisoformat("2024-02-29T08:00:00+01:00"),
            "2024-02-29 09:00+01:00",
            datetime.fromisoformat("2024-02-29T09:00:00+01:00"),
        ),
        (UUID(int=1), str(UUID(int=2)), UUID(int=2)),
        ([1], "[1, 2]", [1, 2]),
        ({"a": 1}, '{"a": null}', {"a": None}),
        (None, '"text"', "text"),
        ("one\ntwo", "one\r\ntwo\r\nthree", "one\ntwo\nthree"),
    ],
)
def test_edited_values_have_the_type_that_was_asked_with(before: Any, typed: str, after: Any) -> None:
    found = edited({"x": before, "other": 1}, {"arg:x": typed, "arg:other": "1"})

    assert found == {"x": after}
    assert type(found["x"]) is type(after)


@pytest.mark.parametrize(
    ("before", "typed"),
    [
        (1, "1.5"),
        (1, "true"),
        (1, ""),
        (True, "1"),
        (1.5, "inf"),
        (Decimal(1), "sNaN"),
        (date(2024, 2, 29), "2023-02-29"),
        (datetime.fromisoformat("2024-02-29T08:00:00+01:00"), "2024-02-29 08:01"),
        ([1], '{"a": 1}'),
        ([1], "[" * 100_00),
        ({"a": 1}, "[]"),
    ],
)
def test_values_of_another_type_are_refused_by_name(before: Any, typed: str) -> None:
    with pytest.raises(Unfit, match="cents must be"):
        edited({"cents": before}, {"arg:cents": typed})


@pytest.mark.parametrize("value", [b"bytes", [Decimal(1)], {"at": date(2024, 2, 29)}, "bell\a", "x" * 30_000])
def test_what_has_no_plain_text_is_not_offered(value: Any) -> None:
    assert edit_fields({"x": value}) == []
    with pytest.raises(Unfit, match="No argument was changed"):
        edited({"x": value}, {"arg:x": "else"})
