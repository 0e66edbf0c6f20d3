"""What callers hand in and what finished runs leave behind, as PostgreSQL's jsonb can hold it.

Inputs are checked and refused, outputs are cleaned and never refused: the work is already done.
"""

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from celegraph.errors import InvalidRunId, InvalidValue
from celegraph.ledger.plain import (
    MAX_DEPTH,
    MAX_INT_BITS,
    MAX_STORED_INT,
    MIN_STORED_INT,
    Json,
    Walk,
    check_float,
    check_int,
    check_text,
    refuse,
)

MAX_RUN_ID = 200
# PostgreSQL counts beyond the year 9999, Python does not: one such row, and no list with it can be read.
MAX_SPAN = timedelta(days=36_525)
# Characters.  Nobody reads more before an answer, and every list and notice carries them.
MAX_PROMPT = 20_000
MAX_NOTE = 10_000
MAX_PERSON = 200


def check_run_id(run_id: object) -> str:
    """1 to 200 printable characters that neither start nor end with a space, or `InvalidRunId`.

    Spaces at the ends would be lost in a URL, a shell or a spreadsheet, and name another run.
    """
    if not isinstance(run_id, str):
        raise InvalidRunId(f"a run_id is a str, not {type(run_id).__name__}: use str(...)")
    problem = _run_id_problem(run_id)
    if problem:
        raise InvalidRunId(f"run_id {reprlib.repr(run_id)} {problem}")
    return str.__str__(run_id)


def _run_id_problem(run_id: str) -> str | None:
    if not run_id:
        return "is empty"
    if len(run_id) > MAX_RUN_ID:
        return f"has {len(run_id)} characters, the limit is {MAX_RUN_ID}"
    unprintable = next((char for char in run_id if not char.isprintable()), None)
    if unprintable is not None:
        return f"contains U+{ord(unprintable):04X}, which is not printable"
    if run_id != run_id.strip():
        return "starts or ends with a space"
    return None


def check_span(span: timedelta | None, *, path: str) -> timedelta | None:
    """A time to wait of at most a hundred years either way, or `InvalidValue`."""
    if span is not None and abs(span) > MAX_SPAN:
        raise InvalidValue(path, "is more than a hundred years")
    return span


# -- inputs ----------------------------------------------------------------------------------------


def check_json(value: object, *, path: str) -> Json:
    """The value as plain JSON (tuples as lists), or `InvalidValue` with field and remedy."""
    return _plain(value, path)


def check_stored_json(value: object, *, path: str) -> Json:
    """As `check_json`, for what goes into a graph's state: LangGraph keeps no integer beyond 64 bits."""
    return _for_state(value, path)


def check_note(text: str | None, *, path: str) -> str | None:
    """What a person says about what they do; `InvalidValue` when it cannot be stored or is too long."""
    return _check_words(text, path, MAX_NOTE)


def check_person(name: str | None, *, path: str = "by") -> str | None:
    """Who does it, as they are called; `InvalidValue`."""
    return _check_words(name, path, MAX_PERSON)


def _check_words(text: object, path: str, most: int) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise InvalidValue(path, f"is of type {type(text).__name__}; pass text")
    if len(text) > most:
        raise InvalidValue(path, f"has {len(text)} characters, the limit is {most}")
    return check_text(text, path)


def _state_leaf(value: object, path: str) -> Json:
    plain = _plain_leaf(value, path)
    if isinstance(plain, int) and not MIN_STORED_INT <= plain <= MAX_STORED_INT:
        raise InvalidValue(path, "is an integer of more than 64 bits; pass it as text")
    return plain


def _plain_leaf(value: object, path: str) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return check_text(value, path)
    if isinstance(value, int):
        return check_int(value, path)
    if isinstance(value, float):
        return check_float(value, path)
    remedy = _remedy(value)
    if remedy is None:
        raise refuse(value, path)
    raise InvalidValue(path, f"is of type {type(value).__name__}, not plain JSON; pass {remedy}")


def _remedy(value: object) -> str | None:
    if isinstance(value, BaseModel):
        return '.model_dump(mode="json")'
    if isinstance(value, Enum):
        return ".value"
    if isinstance(value, (date, time)):
        return ".isoformat()"
    if isinstance(value, (Decimal, UUID)):
        return "str(...)"
    if isinstance(value, (bytes, bytearray)):
        return "base64 text"
    if dataclasses.is_dataclass(value):
        return "dataclasses.asdict(...)"
    return None


_plain = Walk(leaf=_plain_leaf)
_for_state = Walk(leaf=_state_leaf)


# -- outputs ---------------------------------------------------------------------------------------


def clean_json(value: object) -> Json:
    """A readable JSON form of anything; never fails.

    pydantic decides how an object looks, `repr` speaks for what it does not know.  NUL and lone
    surrogates become U+FFFD, NaN and infinities text, keys text (of two that become equal the later
    stays), integers beyond 2048 bits hexadecimal text, and what contains itself or is nested more
    than 100 levels deep "...".
    """
    try:
        return _clean(value, ())
    except Exception:
        # Only a container that fails while it is read gets here; what it holds cannot be known.
        return _described(value)


def _clean(value: object, above: tuple[int, ...]) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() <= MAX_INT_BITS else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _name_of(value)
    if id(value) in above or len(above) == MAX_DEPTH:
        return "..."
    below = (*above, id(value))
    if isinstance(value, Mapping):
        return {_clean_key(key): _clean(item, below) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_clean(item, below) for item in value]
    return _clean(_dumped(value), below)


def _dumped(value: object) -> object:
    # An iterator would be used up by looking at it, and may never end.
    if isinstance(value, Iterator):
        return _described(value)
    try:
        dumped: object = to_jsonable_python(value, fallback=_described, bytes_mode="base64")
    except Exception:
        # A cycle inside a model, or a serializer of the user's that fails.
        return _described(value)
    return dumped


def _described(value: object) -> str:
    try:
        return _clean_text(repr(value))
    except Exception:
        return f"<{type(value).__name__}>"


def _clean_key(key: object) -> str:
    if isinstance(key, str):
        return _clean_text(key)
    try:
        return _clean_text(str(key))
    except Exception:
        return _described(key)


def _clean_text(text: str) -> str:
    plain = str.__str__(text).replace("\0", "\ufffd")
    # Strict UTF-16 joins what is left of surrogate pairs; each lone half is replaced.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _name_of(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"
