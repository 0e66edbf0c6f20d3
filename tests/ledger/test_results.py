"""An effect's result comes back equal, whether PostgreSQL had it or not."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from pydantic import BaseModel

from celegraph.errors import InvalidValue
from celegraph.ledger.canonical import canonical_json, decode_result, encode_result
from celegraph.ledger.plain import Json
from tests.ledger.strategies import results, through_jsonb


class Level(Enum):
    HIGH = 3


@dataclasses.dataclass
class Receipt:
    number: int
    lines: tuple[str, ...]


class Answer(BaseModel):
    paid: Decimal
    receipt: Receipt


def told_apart(value: object) -> object:
    """The value with its types and its order: 1, 1.0 and True differ, and so do reordered dicts."""
    if isinstance(value, dict):
        return [(key, told_apart(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [told_apart(item) for item in value]
    return (type(value), repr(value))


@given(results)
@example([1, 1.0, 1e16, 1e20, 1e300, 5e-324, 1e-7, -0.0, 0.0, 2**70])
@example({"$decimal": "10", "$$decimal": {"$decimal": Decimal("10.00")}})
@example({"bb": 1, "a": 2, "": 3, "$": 4, "$$": 5})
def test_a_result_comes_back_equal_from_jsonb_and_the_first_pass_sees_the_same(
    value: object,
) -> None:
    encoded = encode_result(value)
    first = decode_result(encoded)
    later = decode_result(through_jsonb(encoded))

    assert first == value
    assert told_apart(first) == told_apart(later)


@given(results)
def test_a_decoded_result_is_stable_when_it_is_stored_again(value: object) -> None:
    once = decode_result(encode_result(value))

    assert told_apart(decode_result(encode_result(once))) == told_apart(once)


def test_types_that_json_does_not_know_come_back_as_themselves() -> None:
    value = {
        "none": None, "bool": True, "int": 1, "float": 1.0, "list": [1],
        "decimal": Decimal("10.00"),
        "at": datetime(2026, 3, 29, 2, 30, tzinfo=UTC),
        "naive": datetime(2026, 3, 29),  # noqa: DTZ001
        "day": date(2026, 3, 29), "time": time(9), "delta": timedelta(seconds=1.5),
        "id": UUID(int=1), "bytes": b"\xff\0",
    }  # fmt: skip

    back = decode_result(through_jsonb(encode_result(value)))

    assert isinstance(back, dict)
    assert back == value
    assert {key: type(item) for key, item in back.items()} == {k: type(v) for k, v in value.items()}
    assert str(back["decimal"]) == "10.00"


def test_records_come_back_as_plain_dicts_and_tuples_as_lists() -> None:
    answer = Answer(paid=Decimal("1.50"), receipt=Receipt(7, ("a", "b")))

    assert decode_result(encode_result([answer, Level.HIGH, bytearray(b"x")])) == [
        {"paid": Decimal("1.50"), "receipt": {"number": 7, "lines": ["a", "b"]}}, 3, b"x",
    ]  # fmt: skip


def test_keys_come_back_sorted_on_the_first_pass_too() -> None:
    back = decode_result(encode_result({"bb": 1, "a": 2, "ccc": {"z": 1, "y": 2}}))

    assert isinstance(back, dict)
    assert list(back) == ["a", "bb", "ccc"]
    assert list(back["ccc"]) == ["y", "z"]


def test_a_time_zone_comes_back_as_its_offset() -> None:
    moment = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))

    back = decode_result(encode_result(moment))

    assert back == moment
    assert isinstance(back, datetime)
    assert back.utcoffset() == timedelta(hours=2)
    assert canonical_json(back) == canonical_json(moment)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": {1: "x"}}, "result.a"),
        ({"a": [float("nan")]}, "result.a[0]"),
        ({"a": Decimal("Infinity")}, "result.a"),
        ({"a": "\0"}, "result.a"),
        (["\udfff"], "result[0]"),
        ({"a": object()}, "result.a"),
        ({"a": {1, 2}}, "result.a"),
    ],
)
def test_a_result_that_cannot_be_kept_is_refused_with_its_path(value: object, path: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        encode_result(value)
    assert caught.value.path == path


@pytest.mark.parametrize("stored", [{"$matrix": "1"}, {"$decimal": 1}])
def test_a_tag_of_a_newer_release_is_named_not_guessed(stored: Json) -> None:
    with pytest.raises(InvalidValue, match="which this release cannot read"):
        decode_result(stored)
