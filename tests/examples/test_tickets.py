"""The file of tickets is what demo and tests live on; bad tickets are refused before any act."""

from __future__ import annotations

import json

import pytest

from examples.support.tickets import TicketRefused, load_tickets, read_ticket

TICKETS = load_tickets()
GOOD = {"ticket_id": "T-1", "from": "ana@shop.example", "subject": "Hello", "body": "A question"}


def test_every_ticket_of_the_file_can_be_read() -> None:
    ids = [read_ticket(ticket).ticket_id for ticket in TICKETS]

    assert len(ids) >= 24
    assert len(set(ids)) == len(ids)


def test_every_ticket_of_the_file_has_its_own_customer_so_deliveries_can_be_counted() -> None:
    assert len({ticket["from"] for ticket in TICKETS}) == len(TICKETS)
    # Names reserved for examples: no mail of ours can ever reach a stranger.
    assert all(ticket["from"].endswith(".example") for ticket in TICKETS)


def test_the_file_holds_the_hard_kinds_of_text() -> None:
    bodies = [ticket["body"] for ticket in TICKETS]
    text = json.dumps(TICKETS, ensure_ascii=False)

    assert "" in bodies
    assert max(map(len, bodies)) > 10_000
    assert any("<html>" in body for body in bodies)
    assert all(sample in text for sample in ("🎉", "Grüßen", "Cordialement", "DROP TABLE"))


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("ticket_id", "", "'ticket_id' is empty"),
        ("ticket_id", 17, "'ticket_id' must be a text, not 17"),
        ("body", None, "'body' must be a text, not None"),
        ("from", "ana", "'from' is not a mail address: 'ana'"),
        ("from", "ana@shop.example, eve@evil.example", "'from' is not a mail address"),
        ("from", "ana@shop.example\nBcc: eve@evil.example", "'from' must be a single line"),
        ("subject", "Hi\r\nBcc: eve@evil.example", "'subject' must be a single line"),
        ("subject", "Hi\u2028there", "'subject' must be a single line"),
    ],
)
def test_what_could_not_be_answered_is_refused_with_the_field(
    field: str, value: object, problem: str
) -> None:
    with pytest.raises(TicketRefused, match=problem):
        read_ticket({**GOOD, field: value})


def test_a_missing_field_is_refused() -> None:
    with pytest.raises(TicketRefused, match="'subject'"):
        read_ticket({key: value for key, value in GOOD.items() if key != "subject"})
