"""Inputs are refused early and helpfully; outputs are kept whatever they are."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from pydantic import BaseModel, SecretStr

from celegraph.errors import InvalidRunId, InvalidValue
from celegraph.ledger.plain import Json
from celegraph.ledger.values import check_json, check_run_id, clean_json


class Colour(StrEnum):
    RED = "red"


class Level(Enum):
    HIGH = 3


@dataclasses.dataclass
class Line:
    sku: str


class Order(BaseModel):
    id: int = 1
    note: str = ""
    parent: Order | None = None
    token: SecretStr = SecretStr("hidden")


class Mute:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


class Broken(dict[str, object]):
    def items(self) -> None:  # type: ignore[override]
        raise RuntimeError("no items")


# -- run ids ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("run_id", ["r", "x" * 200, "order 17/überprüfung 💶", "a:b", "a@b.example"])
def test_a_printable_run_id_is_taken_as_it_is(run_id: str) -> None:
    assert check_run_id(run_id) == run_id


@pytest.mark.parametrize(
    ("run_id", "problem"),
    [
        ("", "is empty"),
        ("x" * 201, "has 201 characters, the limit is 200"),
        ("a\0", r"contains U\+0000, which is not printable"),
        ("a\n", r"contains U\+000A"),
        ("\u200ba", r"contains U\+200B"),
        ("a\ud800", r"contains U\+D800"),
        (" ", "starts or ends with a space"),
        ("run-1 ", "starts or ends with a space"),
        (17, "a run_id is a str, not int"),
        (UUID(int=1), "a run_id is a str, not UUID"),
        (None, "a run_id is a str, not NoneType"),
    ],
)
def test_a_bad_run_id_is_refused_with_what_is_wrong(run_id: object, problem: str) -> None:
    with pytest.raises(InvalidRunId, match=problem):
        check_run_id(run_id)


# -- inputs ----------------------------------------------------------------------------------------


def test_plain_json_passes_and_tuples_become_lists() -> None:
    value = {"a": [1, 1.5, None, True, ("x",)], "c": Colour.RED}

    assert check_json(value, path="input") == {"a": [1, 1.5, None, True, ["x"]], "c": "red"}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (Order(), r'\.model_dump\(mode="json"\)'),
        (AIMessage("hi"), r'\.model_dump\(mode="json"\)'),
        (Line("a"), r"dataclasses\.asdict"),
        (Level.HIGH, r"\.value"),
        (datetime(2026, 1, 1, tzinfo=UTC), r"\.isoformat\(\)"),
        (Decimal(1), r"str\(\.\.\.\)"),
        (UUID(int=1), r"str\(\.\.\.\)"),
        (b"x", "base64"),
        ({1}, "sorted"),
        (object(), "of type object"),
        (Line, "of type type"),
        (float("inf"), "no JSON number"),
        ("\0", "NUL"),
        ("\ud800", "half a character"),
        ({1: 2}, r"use str\(key\)"),
        (2**3000, "2048 bits"),
    ],
)
def test_an_input_that_is_not_plain_json_is_refused_with_path_and_remedy(value: object, problem: str) -> None:
    with pytest.raises(InvalidValue, match=problem) as caught:
        check_json({"messages": [value]}, path="input")
    assert caught.value.path == "input.messages[0]"


def test_an_input_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)

    with pytest.raises(InvalidValue, match=r"^input\[0\]: contains itself$"):
        check_json(value, path="input")


# -- outputs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        ({"a": (1, 2.5, None, True)}, {"a": [1, 2.5, None, True]}),
        ("a\0b\ud800c\U0001f4b6", "a\ufffdb\ufffdc\U0001f4b6"),
        ([float("nan"), float("inf"), -float("inf")], ["NaN", "Infinity", "-Infinity"]),
        ({1: "a", None: "b", "k\0": "c"}, {"1": "a", "None": "b", "k\ufffd": "c"}),
        ([Colour.RED, Level.HIGH, Line("a")], ["red", 3, {"sku": "a"}]),
        (Order(note="\0"), {"id": 1, "note": "\ufffd", "parent": None, "token": "**********"}),
        ([Decimal("1.50"), UUID(int=0), b"\xff"], ["1.50", str(UUID(int=0)), "_w=="]),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"),
        (2**3000, hex(2**3000)),
        ([{1}, frozenset({2})], [[1], [2]]),
        ([Line, Mute(), {Mute(): Mute()}], [repr(Line), "<Mute>", {"<Mute>": "<Mute>"}]),
    ],
)
def test_outputs_become_readable_json(value: object, cleaned: Json) -> None:
    assert clean_json(value) == cleaned


def test_a_message_in_an_output_is_kept_with_its_content() -> None:
    cleaned = clean_json({"messages": [AIMessage("hi\0", id="m-1")]})

    assert isinstance(cleaned, dict)
    assert isinstance(cleaned["messages"], list)
    message = cleaned["messages"][0]
    assert isinstance(message, dict)
    assert (message["content"], message["type"], message["id"]) == ("hi\ufffd", "ai", "m-1")


def test_an_output_that_contains_itself_ends_in_dots() -> None:
    value: dict[str, object] = {"a": 1}
    value["self"] = [value]
    order = Order()
    order.parent = order

    assert clean_json(value) == {"a": 1, "self": ["..."]}
    assert "<Recursion on Order" in str(clean_json([order]))


def test_a_very_deep_output_is_cut() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]

    assert json.dumps(clean_json(value)).count("[") == 100


def test_an_endless_iterator_in_an_output_is_described_not_consumed() -> None:
    endless: Iterator[int] = itertools.count()

    assert clean_json({"n": endless}) == {"n": "count(0)"}
    assert next(endless) == 0


def test_a_container_that_fails_while_it_is_read_does_not_fail_the_run() -> None:
    assert clean_json({"a": Broken()}) == "{'a': {}}"


any_text = st.text(st.characters(exclude_categories=[]), max_size=5)
anything: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers()
    | st.binary(max_size=5) | any_text | st.builds(Mute) | st.builds(Order, note=any_text),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(any_text | st.integers(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(anything)
def test_whatever_a_run_leaves_can_be_stored(value: object) -> None:
    cleaned = clean_json(value)

    assert check_json(cleaned, path="output") == cleaned
    json.dumps(cleaned, allow_nan=False).encode()
