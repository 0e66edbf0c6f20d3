"""One walk from Python values to plain JSON trees, shared by keys, results and run inputs.

What holds for all of them lives here: keys are strings, text is what PostgreSQL can store, nothing
contains itself, and an error names the field.  What a leaf becomes is the caller's business.
"""

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeAlias

from pydantic import BaseModel, RootModel

from celegraph.errors import InvalidValue

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# Far beyond any argument a person wrote, far below the recursion limit of json and rfc8785.
MAX_DEPTH = 100
# 617 decimal digits: Python may be told to refuse the text of integers from 641 digits on.
MAX_INT_BITS = 2048
# What msgpack, in which LangGraph keeps states, has words for.
MIN_STORED_INT, MAX_STORED_INT = -(2**63), 2**64 - 1
# Longer keys are cut in paths, so that an error stays one line.
MAX_KEY_SHOWN = 40


@dataclasses.dataclass(frozen=True)
class Walk:
    """How one kind of tree is made: what objects unfold to, how keys are written, what leaves are.

    Mappings become dicts, lists and tuples become lists, text is what `check_text` lets pass; everything else
    is handed to `leaf`.  `unfold` is not asked about plain texts, integers, dicts and lists.
    """

    leaf: Callable[[object, str], Json]
    unfold: Callable[[object, str], object] = lambda value, path: value
    key: Callable[[str], str] = lambda key: key

    def __call__(self, value: object, path: str, above: tuple[int, ...] = ()) -> Json:
        # Most values are of these very types; to look for more in them would take longer than all the rest.
        inner = value if type(value) in (str, int, dict, list) else self.unfold(value, path)
        if type(inner) is str:
            return check_text(inner, path)
        if isinstance(inner, (dict, Mapping)):  # dict first: the other question is a slow one
            below = _deeper(value, path, above)
            return {
                self.key(check_key(key, path)): self(item, at_key(path, key), below)
                for key, item in inner.items()
            }
        if isinstance(inner, (list, tuple)):
            below = _deeper(value, path, above)
            return [self(item, f"{path}[{n}]", below) for n, item in enumerate(inner)]
        return self.leaf(inner, path)


def _deeper(value: object, path: str, above: tuple[int, ...]) -> tuple[int, ...]:
    if id(value) in above:
        raise InvalidValue(path, "contains itself")
    if len(above) == MAX_DEPTH:
        raise InvalidValue(path, f"is nested more than {MAX_DEPTH} levels deep")
    return (*above, id(value))


def unfold(value: object, path: str) -> object:
    """Enums are their values; dataclasses and pydantic models are dicts of their fields.

    The class name is left out: a class may be renamed without its values becoming others.
    """
    if isinstance(value, Enum):
        return unfold(value.value, path)
    if isinstance(value, RootModel):
        return unfold(value.root, path)
    if isinstance(value, BaseModel):
        # Not dict(value): that also yields cached properties, once somebody has read them.
        own = {name: getattr(value, name) for name in type(value).model_fields}
        return own | (value.model_extra or {})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return value


def at_key(path: str, key: str) -> str:
    """`args` and `order` are `args.order`; keys that are no names stand quoted in brackets."""
    if key.isidentifier() and len(key) <= MAX_KEY_SHOWN:
        return f"{path}.{key}"
    return f"{path}[{reprlib.repr(key)}]"


def check_key(key: object, path: str) -> str:
    """A dict key as plain text; anything but a string would become another key on a JSON hop."""
    if not isinstance(key, str):
        raise InvalidValue(
            path,
            f"has the key {reprlib.repr(key)} of type {type(key).__name__}; JSON knows only text"
            " as a key, use str(key)",
        )
    return key if _is_plain(key) else check_text(key, at_key(path, key))


def check_text(text: str, path: str) -> str:
    """Text that UTF-8 and PostgreSQL can hold; subclasses come back as plain `str`."""
    if _is_plain(text):
        return text
    plain = str.__str__(text)
    if "\0" in plain:
        raise InvalidValue(path, "contains a NUL character, which PostgreSQL cannot store")
    try:
        plain.encode()
    except UnicodeEncodeError:
        raise InvalidValue(path, "contains half a character (a lone surrogate)") from None
    return plain


def _is_plain(text: str) -> bool:
    return type(text) is str and text.isascii() and "\0" not in text


def sought(identifier: object) -> str:
    """The id as PostgreSQL can look for it; "", which nothing is called, for what no column of text can hold.

    An id from a URL may be anything, and what cannot be looked for is nowhere.
    """
    try:
        return check_text(identifier, "id") if isinstance(identifier, str) else ""
    except InvalidValue:
        return ""


def sought_if(identifier: object | None) -> str | None:
    """The same for a condition of a list; None is none."""
    return None if identifier is None else sought(identifier)


def check_int(number: int, path: str) -> int:
    """An integer whose digits every process is willing to print."""
    plain = int(number)
    if plain.bit_length() > MAX_INT_BITS:
        raise InvalidValue(path, f"is an integer of more than {MAX_INT_BITS} bits; pass it as text")
    return plain


def check_float(number: float, path: str) -> float:
    """A finite float."""
    plain = float(number)
    if not math.isfinite(plain):
        raise InvalidValue(path, f"is {plain}, which is no JSON number; pass None or text")
    return plain


def refuse(value: object, path: str) -> InvalidValue:
    """The error for a value of a type that has no place in JSON, with what to pass instead."""
    if isinstance(value, (set, frozenset)):
        return InvalidValue(path, "is a set, which has no order; pass sorted(...)")
    return InvalidValue(
        path, f"is of type {type(value).__name__}; pass its id, or its data as text, list or dict"
    )
