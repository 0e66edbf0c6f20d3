"""The canonical form under generated values."""

from __future__ import annotations

import json

import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from celegraph.ledger.canonical import canonical_json
from celegraph.ledger.plain import Json
from tests.ledger.strategies import exact, finite, plain, through_jsonb


def same(*values: object) -> bool:
    return len({canonical_json(value) for value in values}) == 1


def reordered(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(exact)
@example({"ab": {"a": '"\\/\b\f\n\r\t\x01\x7f\u2028\ud7ff\U0001f600', "B": [True, None]}, "a": {}, "": []})
@example({"\U0001f600": 1, "\ufb33": 2, "z": 1e21})
def test_the_canonical_form_is_that_of_rfc_8785(value: Json) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@given(plain)
def test_any_order_of_keys_has_the_same_bytes(value: Json) -> None:
    assert same(value, reordered(value))


@given(plain)
@example([2.0**60, 1e16, -1e300, 4.623260106401035e16, 5e-324, -0.0])
def test_a_hop_through_json_or_jsonb_changes_nothing(value: Json) -> None:
    assert same(value, json.loads(json.dumps(value)), through_jsonb(value))


@given(st.integers(-(2**53), 2**53), finite)
def test_numbers_have_equal_bytes_exactly_if_they_are_equal(one: int, other: float) -> None:
    assert same(one, float(one))
    assert same(one, other) == (one == other)


@given(st.integers(), st.integers())
@example(2**60, 1152921504606847000)
def test_two_integers_never_share_bytes_however_big(one: int, other: int) -> None:
    assert same(one, other) == (one == other)
    assert not same(2**60 + one, 2**60 + one + 1)
