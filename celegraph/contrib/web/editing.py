"""Arguments as text in a form, and back, each as the type it was asked with.

A person edits what is there: an amount stays a number, a Decimal a Decimal.  What has no plain text
(bytes, a list with dates in it) is shown and not edited.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from celegraph.contrib.web.problems import Unfit
from celegraph.ledger.plain import MAX_INT_BITS
from celegraph.tasks.words import visible

PREFIX = "arg:"
# Beyond it a form is no place to edit.
_LONGEST = 20_000
_MOST_DIGITS = MAX_INT_BITS * 3 // 10


@dataclass(frozen=True)
class EditField:
    """One argument in the form.  `kind` says which control; `hint` what is expected."""

    name: str
    label: str
    text: str
    kind: str  # line | text | yes_no
    hint: str


def edit_fields(args: Mapping[str, Any]) -> list[EditField]:
    """The arguments that can be edited here, in order."""
    found = ((name, _field(name, value)) for name, value in args.items())
    return [field for _, field in found if field is not None]


def _field(name: str, value: Any) -> EditField | None:
    form = _form_of(value)
    if form is None:
        return None
    text = form.write(value)
    # A control character cannot be typed, and a browser would change it.
    if len(text) > _LONGEST or visible(text) != text:
        return None
    kind = "yes_no" if form.kind == "yes_no" else "text" if "\n" in text or len(text) > 60 else "line"
    return EditField(PREFIX + name, visible(name), text, kind, form.hint)


def edited(args: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    """The arguments that the form changes, by name; `Unfit` names the one that does not fit."""
    changed: dict[str, Any] = {}
    for field in edit_fields(args):
        name = field.name.removeprefix(PREFIX)
        given = form.get(field.name)
        # Browsers send line ends as CR LF whatever the text had.
        if given is None or given.replace("\r\n", "\n") == field.text:
            continue
        typed = _form_of(args[name])
        assert typed is not None
        if len(given) > _LONGEST:
            raise Unfit(f"{field.label} is too long to be edited here. The question is still open.")
        try:
            changed[name] = typed.read(given.replace("\r\n", "\n"))
        except (ValueError, InvalidOperation, RecursionError):
            raise Unfit(
                f"{field.label} must be {typed.hint}, like {field.text[:60]!r}. The question is still open:"
                " go back and correct it."
            ) from None
    if not changed:
        raise Unfit("No argument was changed. To allow the call as it is, approve it.")
    return changed


@dataclass(frozen=True)
class _Form:
    """How one type is written and read."""

    hint: str
    write: Callable[[Any], str]
    read: Callable[[str], Any]
    kind: str = ""


def _read_yes_no(text: str) -> bool:
    return {"true": True, "false": False}[text] if text in ("true", "false") else _refuse(text)


def _read_int(text: str) -> int:
    plain = text.strip()
    if not re.fullmatch(r"-?[0-9]+", plain) or len(plain) > _MOST_DIGITS:
        _refuse(text)
    return int(plain)


def _read_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _read_decimal(text: str) -> Decimal:
    number = Decimal(text.strip())
    return number if number.is_finite() else _refuse(text)


def _read_datetime(text: str) -> datetime:
    at = datetime.fromisoformat(text.strip())
    return at if at.tzinfo is not None else _refuse(text)


def _read_list(text: str) -> list[Any]:
    value = json.loads(text)
    return value if isinstance(value, list) else _refuse(text)


def _read_object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    return value if isinstance(value, dict) else _refuse(text)


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


_FORMS: dict[type, _Form] = {
    str: _Form("text", str, str),
    bool: _Form("true or false", lambda value: "true" if value else "false", _read_yes_no, "yes_no"),
    int: _Form("a whole number", str, _read_int),
    float: _Form("a number", repr, _read_float),
    Decimal: _Form("a decimal number", str, _read_decimal),
    datetime: _Form("a date and time with its zone", datetime.isoformat, _read_datetime),
    date: _Form("a date", date.isoformat, lambda text: date.fromisoformat(text.strip())),
    time: _Form("a time of day", time.isoformat, lambda text: time.fromisoformat(text.strip())),
    UUID: _Form("a UUID", str, lambda text: UUID(text.strip())),
    list: _Form("a JSON list", _json, _read_list),
    dict: _Form("a JSON object", _json, _read_object),
    type(None): _Form("JSON", _json, json.loads),
}


def _form_of(value: Any) -> _Form | None:
    form = _FORMS.get(type(value))
    return form if form is not None and (not isinstance(value, list | dict) or _is_plain(value)) else None


def _is_plain(value: Any) -> bool:
    """Whether JSON holds it without a loss: a list with a Decimal in it would come back as text."""
    if isinstance(value, dict):
        return all(_is_plain(item) for item in value.values())
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    return value is None or type(value) in (str, bool, int, float)
