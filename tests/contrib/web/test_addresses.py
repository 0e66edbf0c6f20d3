"""Ids in URLs: every run id comes back, and nothing else is taken for one."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from celegraph.contrib.web.addresses import approval_id_of, cursor, place, run_id_of, segment
from celegraph.contrib.web.problems import BadRequest, NotFound
from celegraph.errors import InvalidRunId
from celegraph.ledger.values import check_run_id


@given(st.text(min_size=1, max_size=200))
@example("..")
@example("a.json")
@example("~YQ")
def test_every_run_id_is_one_harmless_segment_and_comes_back(run_id: str) -> None:
    try:
        check_run_id(run_id)
    except InvalidRunId:
        return

    there = segment(run_id)

    assert run_id_of(there) == run_id
    assert there.isascii()
    assert not set(there) & set("/?#%\\ ")
    assert there not in (".", "..")
    assert not there.endswith((".json", ".txt"))


@pytest.mark.parametrize("given", ["~", "~!", "~/w", "~AA", "a\0", " a", "x" * 201, "~" + "A" * 100_000])
def test_what_no_run_id_is_written_as_is_not_found(given: str) -> None:
    with pytest.raises(NotFound):
        run_id_of(given)


@pytest.mark.parametrize("given", ["", "ap/1", "ap'--", "ä", "a\n", "x" * 101])
def test_what_no_approval_is_called_is_not_found(given: str) -> None:
    with pytest.raises(NotFound):
        approval_id_of(given)


@given(st.datetimes(timezones=st.just(UTC)), st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_place_in_a_list_comes_back(at: datetime, name: str) -> None:
    assert place(cursor((at, name))) == (at, name)


@given(st.text())
def test_damaged_places_are_said_to_be_damaged(given: str) -> None:
    # Nothing else is raised, whatever stands there.
    with suppress(BadRequest):
        place(given)
