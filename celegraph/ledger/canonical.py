"""The one form in which values are hashed, and the one form in which results are kept.

Both mark what JSON has no word for with a tag, `{"$decimal": "10"}`.  A tag starts with one dollar
sign; a caller's own key that starts with `$` is written with one more, so the two never meet.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import rfc8785
from pydantic import BaseModel

from celegraph.errors import InvalidValue, ValueTooLarge
from celegraph.ledger.plain import (
    MAX_STORED_INT,
    MIN_STORED_INT,
    Json,
    Walk,
    check_float,
    check_int,
    check_text,
    refuse,
    unfold,
)

_MICROSECOND = timedelta(microseconds=1)
_EXACT = 2**53 - 1
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_sorted = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


def canonical_json(value: object, *, path: str = "args") -> bytes:
    """Equal values have equal bytes, in every process and release (RFC 8785, types by value).

    1 and 1.0 are equal; True, "1" and Decimal(1) are others.  Beyond 2**53 a float equals the
    integer that JSON writes for it.  Decimals are equal by number, datetimes by instant; tuples are
    lists, enums their values, dataclasses and pydantic models dicts of their fields.  What has no
    stable form raises `InvalidValue` with the field's path.
    """
    tree = _identity(value, path)
    return simple_json(tree) if _is_simple(tree) else rfc8785.dumps(tree)


def simple_json(tree: Json) -> bytes:
    """RFC 8785 for trees of texts and integers under ASCII keys, in a fraction of the time."""
    return _sorted(tree).encode()


def stored_json(stored: Json) -> bytes:
    """A value that `encode_result` has made, as JSON: what its size is measured by."""
    return _compact(stored).encode()


def check_size(encoded: bytes, limit: int, path: str) -> None:
    """Raise `ValueTooLarge` for a value of more than `limit` bytes."""
    if len(encoded) > limit:
        raise ValueTooLarge(path, len(encoded), limit)


def encode_result(value: object, *, path: str = "result") -> Json:
    """A value as jsonb keeps it: `decode_result` gives it back equal, with the same types.

    Some values come back as simpler ones: tuples as lists, enums as their values, dataclasses and
    pydantic models as dicts, dicts with their keys sorted, time zones as their offsets.  The first
    pass must therefore return `decode_result(encode_result(value))` too, never the value itself.
    """
    return _round_trip(value, path)


def decode_result(stored: Json) -> object:
    """What `encode_result` was given; the same before and after PostgreSQL had it."""
    if isinstance(stored, list):
        return [decode_result(item) for item in stored]
    if not isinstance(stored, dict):
        return stored
    tag = next(iter(stored), "")
    if tag.startswith("$") and not tag.startswith("$$"):
        return _from_tag(tag, stored[tag])
    # jsonb orders keys its own way: sorting makes both passes iterate alike.
    return {key.removeprefix("$"): decode_result(stored[key]) for key in sorted(stored)}


def _is_simple(tree: Json) -> bool:
    # Floats are written otherwise by Python, and keys beyond ASCII sorted otherwise.
    if isinstance(tree, dict):
        return all(key.isascii() for key in tree) and all(map(_is_simple, tree.values()))
    if isinstance(tree, list):
        return all(map(_is_simple, tree))
    return not isinstance(tree, float)


def _escape(key: str) -> str:
    return f"${key}" if key.startswith("$") else key


# -- leaves ----------------------------------------------------------------------------------------


def _identity_leaf(value: object, path: str) -> Json:
    """Equal values, equal leaves."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _identity_int(check_int(value, path))
    if isinstance(value, Decimal):
        return {"$decimal": _decimal_by_number(_finite(value, path))}
    if isinstance(value, datetime):
        return {"$datetime": _instant(value, path)}
    return _common_leaf(value, path)


def _round_trip_leaf(value: object, path: str) -> Json:
    """Leaves from which `_from_tag` makes an equal value of the same type."""
    if isinstance(value, int) and not isinstance(value, bool):
        whole = check_int(value, path)
        # What a person shall approve goes through LangGraph's state, where larger ones have no place.
        return whole if MIN_STORED_INT <= whole <= MAX_STORED_INT else {"$int": str(whole)}
    if isinstance(value, float):
        number = check_float(value, path)
        # jsonb writes 1e+20 out as an integer and forgets the sign of -0.0.
        return {"$float": repr(number)} if "e" in repr(number) or _is_minus_zero(number) else number
    if isinstance(value, Decimal):
        return {"$decimal": str(_finite(value, path))}
    if isinstance(value, datetime):
        return {"$datetime": value.isoformat()}
    return _common_leaf(value, path)


def _common_leaf(value: object, path: str) -> Json:
    """The leaves that are written alike for both purposes."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return check_text(value, path)
    if isinstance(value, float):
        return check_float(value, path)
    if isinstance(value, date):
        return {"$date": value.isoformat()}
    if isinstance(value, time):
        if value.tzinfo is not None:
            raise InvalidValue(path, "is a time with a zone but no date; pass a datetime")
        return {"$time": value.isoformat()}
    if isinstance(value, timedelta):
        return {"$timedelta": str(value // _MICROSECOND)}
    if isinstance(value, UUID):
        return {"$uuid": str(value)}
    if isinstance(value, (bytes, bytearray)):
        return {"$bytes": base64.b64encode(value).decode()}
    raise refuse(value, path)


def _identity_int(number: int) -> Json:
    """A number that JSON writes with the digits of an equal float, if there is one; else a tag."""
    if -_EXACT <= number <= _EXACT:
        return number  # each is a float's value, too, and rfc8785 writes both alike
    try:
        as_float = float(number)
    except OverflowError:
        return {"$int": str(number)}
    # By digits, not by ==: jsonb gives the float 2.0**60 back as 1152921504606847000, the shortest
    # digits that mean it, and that must stay the same argument.
    return as_float if Decimal(repr(as_float)) == number else {"$int": str(number)}


def _decimal_by_number(number: Decimal) -> str:
    # By hand: normalize() rounds to the context's precision, str() follows its letter case.
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits))
    short = text.rstrip("0")
    if not short:
        return "0"
    return f"{'-' if sign else ''}{short}e{int(exponent) + len(text) - len(short)}"


def _instant(moment: datetime, path: str) -> str:
    if moment.utcoffset() is None:
        raise InvalidValue(
            path,
            "is a naive datetime, which names no instant; make it aware,"
            " for example .replace(tzinfo=datetime.UTC)",
        )
    try:
        return moment.astimezone(UTC).isoformat()
    except OverflowError:
        raise InvalidValue(path, "is a datetime outside the years 1 to 9999 in UTC") from None


def _finite(number: Decimal, path: str) -> Decimal:
    if not number.is_finite():
        raise InvalidValue(path, "is a Decimal that is not finite; pass None or text")
    return number


def _is_minus_zero(number: float) -> bool:
    return number == 0 and math.copysign(1, number) < 0


# -- the way back ----------------------------------------------------------------------------------

_DECODERS: dict[str, Callable[[str], object]] = {
    "$float": float,
    "$int": int,
    "$decimal": Decimal,
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$time": time.fromisoformat,
    "$timedelta": lambda text: int(text) * _MICROSECOND,
    "$uuid": UUID,
    "$bytes": base64.b64decode,
}


def _from_tag(tag: str, text: Json) -> object:
    decode = _DECODERS.get(tag)
    if decode is None or not isinstance(text, str):
        raise InvalidValue("result", f"was stored as {tag!r}, which this release cannot read")
    return decode(text)


# -- the two walks ---------------------------------------------------------------------------------


def _unfold_argument(value: object, path: str) -> object:
    # Known by where its class comes from: the ledger does not import LangChain.
    if isinstance(value, BaseModel) and any(
        base.__module__.startswith("langchain_core.messages") for base in type(value).__mro__
    ):
        raise InvalidValue(
            path,
            "is a LangChain message, whose id and metadata are others on every run;"
            " pass its text or the fields that matter",
        )
    return unfold(value, path)


_identity = Walk(leaf=_identity_leaf, unfold=_unfold_argument, key=_escape)
_round_trip = Walk(leaf=_round_trip_leaf, unfold=unfold, key=_escape)
