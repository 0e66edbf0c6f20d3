"""What a ticket is, and the file of tickets that demo and tests work through."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TICKETS_FILE = Path(__file__).with_name("tickets.json")

# Enough to refuse what no mail server would take; the server has the last word.
_ADDRESS = re.compile(r"[^@\s<>,;:\"]+@[^@\s<>,;:\"]+")
_FIELDS = ("ticket_id", "from", "subject", "body")


class TicketRefused(ValueError):
    """The input is not a ticket that can be answered by mail; the message names the field."""


@dataclass(frozen=True)
class Ticket:
    """A customer's question as it came in."""

    ticket_id: str
    sender: str
    subject: str
    body: str

    @property
    def question(self) -> str:
        """All the customer wrote."""
        return f"{self.subject}\n{self.body}".strip()


def read_ticket(given: Mapping[str, object]) -> Ticket:
    """The ticket in a run's input, or `TicketRefused` before anything is done for it."""
    fields: dict[str, str] = {}
    for name in _FIELDS:
        value = given.get(name)
        if not isinstance(value, str):
            raise TicketRefused(f"ticket: {name!r} must be a text, not {value!r}")
        fields[name] = value.strip()
    if not fields["ticket_id"]:
        raise TicketRefused("ticket: 'ticket_id' is empty")
    # Both end in mail headers, where a second line would be a header of the customer's choosing.
    for name in ("from", "subject"):
        if has_line_break(fields[name]):
            raise TicketRefused(f"ticket: {name!r} must be a single line")
    if not is_address(fields["from"]):
        raise TicketRefused(f"ticket: 'from' is not a mail address: {fields['from']!r}")
    return Ticket(fields["ticket_id"], fields["from"], fields["subject"], fields["body"])


def is_address(text: str) -> bool:
    """One plain mail address, without a display name and without anything else beside it."""
    return _ADDRESS.fullmatch(text) is not None and not has_line_break(text)


def has_line_break(text: str) -> bool:
    """True for every character that a mail library or server could take for the end of a line."""
    return len(f"{text}.".splitlines()) > 1 or "\0" in text


def load_tickets(path: Path = TICKETS_FILE) -> list[dict[str, str]]:
    """The inputs of the file, each ready for `start_run`."""
    tickets: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return tickets
