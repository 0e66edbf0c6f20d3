"""A question as its page shows it: exactly what is bound, and on re-asking what is other than before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from celegraph.agent.actions import review_of
from celegraph.contrib.web.problems import NotFound
from celegraph.contrib.web.shown import Excerpt, as_json, excerpt, one_line
from celegraph.ledger.approvals import Approval
from celegraph.ledger.canonical import decode_result

# Rows of a table and letters of a value; everything is in the full text.
_MOST_ROWS = 60
_LONGEST = 1_000


@dataclass(frozen=True)
class Row:
    """One argument.  `before`: what it was when it was asked the last time, if that was another value."""

    name: str
    value: Excerpt
    before: Excerpt | None = None


@dataclass(frozen=True)
class Subject:
    """One call (or one value) in question; `more` rows are not shown."""

    title: str | None
    rows: list[Row]
    more: int = 0
    before_title: str = "Before"

    @property
    def changed(self) -> bool:
        """Some row differs from before."""
        return any(row.before is not None for row in self.rows)


def bound_args(asked: Approval) -> Any:
    """The value in question, decoded; only calls' arguments are in the ledger's encoding."""
    is_call = asked.args_hash is not None or asked.kind == "drift"
    return decode_result(asked.args) if is_call else asked.args


def subjects(asked: Approval) -> list[Subject]:
    """What is to be decided, as tables."""
    value = bound_args(asked)
    if asked.kind == "drift" and isinstance(value, dict):
        return [_table(asked.tool, value.get("now"), value.get("recorded"), "Recorded call")]
    review = review_of(value) if asked.args_hash is None else None
    if review is not None:
        return [_table(action.name, action.args, None, "") for action in review.actions]
    # A plain interrupt's text is the prompt already.
    if asked.args_hash is None and (value is None or isinstance(value, str)):
        return []
    return [_table(asked.tool, value, _before(asked), "Before")]


def _before(asked: Approval) -> Any:
    """The arguments that were decided on when this was asked the last time."""
    encoded = asked.previous.get("args") if isinstance(asked.previous, Mapping) else None
    return decode_result(encoded) if encoded is not None else None


def editable_args(asked: Approval) -> Mapping[str, Any]:
    """The arguments of the one call in question, by name."""
    value = bound_args(asked)
    review = review_of(value) if asked.args_hash is None else None
    if review is not None:
        return review.actions[0].args if len(review.actions) == 1 else {}
    return value if isinstance(value, Mapping) else {}


def full_text(asked: Approval, part: str) -> str | None:
    """One part of the question without a cut; None for a part that it does not have."""
    return {"prompt": asked.prompt, "arguments": excerpt(bound_args(asked), 100_000_000).text}.get(part)


def must_have(found: str | None) -> str:
    """The text, or a page that says that there is none of this name."""
    if found is None:
        raise NotFound("text")
    return found


def _table(title: str | None, value: Any, before: Any, before_title: str) -> Subject:
    rows = _rows(value, before)
    return Subject(title, rows[:_MOST_ROWS], max(0, len(rows) - _MOST_ROWS), before_title)


def _rows(value: Any, before: Any) -> list[Row]:
    if not isinstance(value, Mapping):
        return [Row("value", _cell(value))]
    earlier = before if isinstance(before, Mapping) else None
    names = [*value, *(name for name in earlier or {} if name not in value)]
    return [_row(name, value, earlier) for name in names]


def _row(name: str, value: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> Row:
    now = _cell(value[name]) if name in value else Excerpt("-")
    if earlier is None or (name in earlier and name in value and _is_same(earlier[name], value[name])):
        return Row(one_line(name), now)
    return Row(one_line(name), now, _cell(earlier[name]) if name in earlier else Excerpt("-"))


def _is_same(before: Any, now: Any) -> bool:
    # Not ==, for which True is 1 and 1 is 1.0: to an approval they are other arguments.
    return type(before) is type(now) and as_json(before) == as_json(now)


def _cell(value: Any) -> Excerpt:
    # A Decimal or a date as people write it; JSON would put it in quotes, as if it were text.
    json_has_it = value is None or isinstance(value, bool | int | float | list | Mapping)
    return excerpt(value if json_has_it else str(value), _LONGEST)
