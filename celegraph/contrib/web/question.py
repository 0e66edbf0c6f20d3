"""A question as its page shows it: exactly what is bound, and on re-asking what is other than before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from celegraph.contrib.web.problems import NotFound
from celegraph.contrib.web.shown import Excerpt, excerpt, one_line
from celegraph.ledger.approvals import Approval
from celegraph.ledger.canonical import decode_result
from celegraph.ledger.listing import AskedBefore

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


def subjects(asked: Approval, before: AskedBefore | None) -> list[Subject]:
    """What is to be decided, as tables."""
    value = bound_args(asked)
    if asked.kind == "drift" and isinstance(value, dict):
        return [_table(asked.tool, value.get("now"), value.get("recorded"), "Recorded call")]
    if isinstance(value, dict) and isinstance(value.get("action_requests"), list):
        return [_action(action) for action in value["action_requests"]]
    # A plain interrupt's text is the prompt already.
    if asked.args_hash is None and (value is None or isinstance(value, str)):
        return []
    earlier = decode_result(before.args) if before is not None and asked.args_hash is not None else None
    return [_table(asked.tool, value, earlier if isinstance(earlier, dict) else None, "Before")]


def full_text(asked: Approval, part: str) -> str | None:
    """One part of the question without a cut; None for a part that it does not have."""
    return {"prompt": asked.prompt, "arguments": excerpt(bound_args(asked), 100_000_000).text}.get(part)


def must_have(found: str | None) -> str:
    """The text, or a page that says that there is none of this name."""
    if found is None:
        raise NotFound("text")
    return found


def _action(action: Any) -> Subject:
    """One of the calls that LangChain's human-in-the-loop middleware asks about at once."""
    if not isinstance(action, dict):
        return _table(None, action, None, "")
    name = action.get("name") or action.get("action")
    return _table(str(name) if name else None, action.get("args", action), None, "")


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
    if earlier is None or (name in earlier and name in value and earlier[name] == value[name]):
        return Row(one_line(name), now)
    return Row(one_line(name), now, _cell(earlier[name]) if name in earlier else Excerpt("-"))


def _cell(value: Any) -> Excerpt:
    # A Decimal or a date as people write it; JSON would put it in quotes, as if it were text.
    json_has_it = value is None or isinstance(value, bool | int | float | list | Mapping)
    return excerpt(value if json_has_it else str(value), _LONGEST)
