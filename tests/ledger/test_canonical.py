"""What is equal has equal bytes, what differs does not, and the rest is refused by name."""

from __future__ import annotations

import dataclasses
import functools
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal, getcontext, localcontext
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import NamedTuple, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel, ConfigDict, RootModel

from celegraph.errors import InvalidValue, ValueTooLarge
from celegraph.ledger.canonical import canonical_json, check_size
from celegraph.ledger.plain import MAX_DEPTH

# Frozen: a change here means that runs in flight pay twice.
GOLDEN: list[tuple[object, bytes]] = [
    (None, b"null"),
    ([True, False, 0, -1, 1.5, 1e21, 1e-7, -0.0], b"[true,false,0,-1,1.5,1e+21,1e-7,0]"),
    ({"b": 1, "a": {"y": 2, "x": []}, "": {}}, b'{"":{},"a":{"x":[],"y":2},"b":1}'),
    ('é€\U0001f4b6"\\\n\x1f', b'"\xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xb6\\"\\\\\\n\\u001f"'),
    ({"\U0001f600": 1, "\ufb33": 2}, b'{"\xf0\x9f\x98\x80":1,"\xef\xac\xb3":2}'),
    ([2**53, 2**53 + 1], b'[9007199254740992,{"$int":"9007199254740993"}]'),
    ([2.0**60, 1152921504606847000], b"[1152921504606847000,1152921504606847000]"),
    ([2**60, 10**21], b'[{"$int":"1152921504606846976"},1e+21]'),
    (10**400, b'{"$int":"1' + b"0" * 400 + b'"}'),
    ([Decimal("19.99"), Decimal("-1E+3")], b'[{"$decimal":"1999e-2"},{"$decimal":"-1e3"}]'),
    ([Decimal("0.00"), Decimal("-0")], b'[{"$decimal":"0"},{"$decimal":"0"}]'),
    (datetime(2026, 3, 29, 2, 30, tzinfo=UTC), b'{"$datetime":"2026-03-29T02:30:00+00:00"}'),
    (date(2026, 3, 29), b'{"$date":"2026-03-29"}'),
    (time(9, 30), b'{"$time":"09:30:00"}'),
    (timedelta(days=-1, microseconds=1), b'{"$timedelta":"-86399999999"}'),
    (UUID(int=1), b'{"$uuid":"00000000-0000-0000-0000-000000000001"}'),
    ([b"\xff", bytearray(b"")], b'[{"$bytes":"/w=="},{"$bytes":""}]'),
    ({"$decimal": "10", "$$x": 1}, b'{"$$$x":1,"$$decimal":"10"}'),
]


class Colour(StrEnum):
    RED = "red"


class Level(Enum):
    HIGH = 3


@dataclasses.dataclass
class Line:
    sku: str
    price: object


class Order(BaseModel):
    id: int
    lines: list[Line] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    keys: str

    @functools.cached_property
    def shout(self) -> str:
        return self.keys.upper()


class Point(NamedTuple):
    x: int
    y: int


class Address(TypedDict):
    city: str


def same(*values: object) -> bool:
    return len({canonical_json(value) for value in values}) == 1


@pytest.mark.parametrize(("value", "encoded"), GOLDEN)
def test_canonical_bytes_are_frozen(value: object, encoded: bytes) -> None:
    assert canonical_json(value) == encoded


def test_f12_dict_order() -> None:
    one = {"b": 1, "a": {"y": 2, "x": [{"q": 1, "p": 2}]}}
    other = {"a": {"x": [{"p": 2, "q": 1}], "y": 2}, "b": 1}

    assert same(one, other)
    assert not same({"x": [1, 2]}, {"x": [2, 1]})


def test_f13_1_vs_1_0_after_a_json_hop() -> None:
    assert same({"hours": 1.0}, {"hours": 1})
    assert same({"n": 1e2}, {"n": 100})
    assert same({"n": 1e30}, {"n": 10**30})
    assert not same({"n": True}, {"n": 1})
    assert not same({"id": "1"}, {"id": 1})


def test_f14_decimal_datetime_uuid_bytes_as_arguments_go_by_value() -> None:
    instant = datetime(2026, 3, 29, 2, 30, tzinfo=UTC)
    berlin = ZoneInfo("Europe/Berlin")

    assert same(Decimal("10"), Decimal("10.00"), Decimal("1E+1"))
    assert same(instant, instant.astimezone(timezone(timedelta(hours=2))), instant.astimezone(berlin))
    assert not same(Decimal("10"), 10)
    assert not same(Decimal("10"), "10")
    assert not same(Decimal("0.1"), 0.1)
    assert not same(UUID(int=1), str(UUID(int=1)))
    assert not same(b"a", "a")
    assert not same(
        datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=0),
        datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=1),
    )


def test_f14_set_as_argument_is_refused_with_its_path() -> None:
    with pytest.raises(InvalidValue, match=r"^args\.s: is a set, .*sorted\(") as caught:
        canonical_json({"s": {"a", "b"}})
    assert caught.value.path == "args.s"


@pytest.mark.parametrize("value", [{1: "a"}, {1: "a", "b": 2}, {1: "a", "1": "b"}, {None: 1}])
def test_f15_non_string_dict_keys_are_refused_with_the_remedy(value: object) -> None:
    with pytest.raises(InvalidValue, match=r"^args\.by_id: has the key .* use str\(key\)$"):
        canonical_json({"by_id": value})


def test_decimals_do_not_depend_on_the_threads_context() -> None:
    long = Decimal("1.0000000000000000000000000000000000001")
    encoded = canonical_json([long, Decimal("1E+30")])

    with localcontext() as context:
        context.prec, context.capitals = 3, 0
        assert getcontext().prec == 3
        assert canonical_json([long, Decimal("1E+30")]) == encoded
    assert not same(long, Decimal(1))


def test_enums_tuples_and_records_are_their_values() -> None:
    assert same(Colour.RED, "red")
    assert same({Colour.RED: 1}, {"red": 1})
    assert same(Level.HIGH, 3)
    assert same((1, (2,)), [1, [2]])
    assert same(Point(1, 2), [1, 2])
    assert same(Line("a", Decimal("1.0")), {"sku": "a", "price": Decimal(1)})
    assert same(Order(id=1, lines=[Line("a", 1)]), {"id": 1, "lines": [{"sku": "a", "price": 1.0}]})
    assert same(RootModel[list[int]]([1]), [1])
    assert same(Address(city="Ulm"), MappingProxyType({"city": "Ulm"}))


def test_a_model_is_its_fields_whatever_was_cached_on_it() -> None:
    fresh, used = Open(keys="k", extra=1), Open(keys="k", extra=1)  # type: ignore[call-arg]

    assert used.shout == "K"

    assert same(fresh, used, {"keys": "k", "extra": 1})


def test_a_callers_dict_cannot_imitate_a_tag() -> None:
    assert not same(Decimal(10), {"$decimal": "1e1"})
    assert not same({"$decimal": "1e1"}, {"$$decimal": "1e1"})
    assert not same(2**53 + 1, {"$int": str(2**53 + 1)})


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        ({"order": {"lines": [0, 1, Line("a", float("nan"))]}}, "args.order.lines[2].price", "nan"),
        ([float("-inf")], "args[0]", "-inf"),
        ({"d": Decimal("NaN")}, "args.d", "not finite"),
        ({"at": datetime(2026, 1, 1)}, "args.at", "make it aware"),  # noqa: DTZ001
        ({"at": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))}, "args.at", "years"),
        ({"at": time(9, tzinfo=UTC)}, "args.at", "no date"),
        ({"a": "x\0"}, "args.a", "NUL"),
        ({"a\0": 1}, "args['a\\x00']", "NUL"),
        ({"a b": "\ud800"}, "args['a b']", "half a character"),
        ({"n": 2**2048}, "args.n", "more than 2048 bits"),
        ({"m": [HumanMessage("hi")]}, "args.m[0]", "LangChain message"),
        ({"o": object()}, "args.o", "of type object"),
        ({"o": Order}, "args.o", "pass its id"),
        ({"k" * 41: object()}, "args['kkkkkkkkkkkk...kkkkkkkkkkkkk']", "of type object"),
    ],
)
def test_what_has_no_stable_form_is_refused_with_the_fields_path(
    value: object, path: str, problem: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        canonical_json(value)
    assert caught.value.path == path
    assert problem in caught.value.problem


def test_cycles_and_absurd_depth_are_refused() -> None:
    cycle: dict[str, object] = {}
    cycle["a"] = [cycle]
    line = Line("a", None)
    line.price = line
    deep: list[object] = []
    for _ in range(MAX_DEPTH):
        deep = [deep]

    with pytest.raises(InvalidValue, match=r"^args\.a\[0\]: contains itself$"):
        canonical_json(cycle)
    with pytest.raises(InvalidValue, match=r"^args\.price: contains itself$"):
        canonical_json(line)
    with pytest.raises(InvalidValue, match="more than 100 levels deep"):
        canonical_json(deep)
    canonical_json(deep[0])


def test_the_same_object_twice_is_no_cycle() -> None:
    line = Line("a", 1)

    assert same([line, line], [Line("a", 1), Line("a", 1)])


def test_a_value_over_the_limit_names_its_size() -> None:
    check_size(b"12345", 5, "args")

    with pytest.raises(ValueTooLarge, match="6 bytes of canonical JSON, the limit is 5") as caught:
        check_size(b"123456", 5, "args")
    assert (caught.value.size, caught.value.limit) == (6, 5)
