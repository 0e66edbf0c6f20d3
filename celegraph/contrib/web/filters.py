"""What the filters of the lists mean; a value that means nothing is no filter."""

from __future__ import annotations

from collections.abc import Sequence

from celegraph.contrib.web.problems import BadRequest
from celegraph.ledger.states import STATUSES


def chosen_agents(visible: Sequence[str], agent: str | None) -> list[str]:
    """The one that was chosen, if it may be seen; else all that may."""
    return [agent] if agent in visible and agent is not None else list(visible)


def chosen_statuses(status: str | None) -> Sequence[str]:
    """One status, or all."""
    return [status] if status in STATUSES else STATUSES


def chosen_text(given: str | None) -> str | None:
    """Part of a run id, as typed."""
    text = (given or "").strip()
    if "\0" in text or len(text) > 200:
        raise BadRequest("The text to look for is longer than any run id, or holds what none can hold.")
    return text or None


def chosen_tag(given: str | None) -> tuple[str, str] | None:
    """`name=value`."""
    text = (given or "").strip()
    if not text:
        return None
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or "\0" in text:
        raise BadRequest("A tag to look for is written as name=value, like customer=42.")
    return name.strip(), value.strip()
