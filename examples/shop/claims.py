"""A claim as both shops take it from a form and hand it to the agent."""

from __future__ import annotations

from typing import Any, Protocol

_LONGEST_REASON = 2_000


class Bought(Protocol):
    """An order, of whichever shop."""

    number: Any
    cents: Any
    urgent: Any


def cleaned_reason(text: str) -> tuple[str, str | None]:
    """The reason, and what is wrong with it."""
    reason = text.replace("\0", "").strip()
    if not reason:
        return reason, "Please say what went wrong."
    if len(reason) > _LONGEST_REASON:
        return reason, f"Please keep it below {_LONGEST_REASON} letters."
    return reason, None


def run_input(order: Bought, *, customer: str, reason: str) -> dict[str, Any]:
    """The run's input; the payment provider refunds `ch_<cents>` up to that amount."""
    return {
        "order": order.number,
        "charge": f"ch_{order.cents}",
        "cents": order.cents,
        "reason": reason,
        "customer": customer,
        "urgent": order.urgent,
    }
