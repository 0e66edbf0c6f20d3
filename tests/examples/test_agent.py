"""The shape of the reference agent: nothing is sent that was not asked."""

from __future__ import annotations

import pytest

from examples.support.agent import TicketInput, graph, read
from examples.support.tickets import TicketRefused, load_tickets

EDGES = {(edge.source, edge.target) for edge in graph.compile().get_graph().edges}


def test_the_only_way_to_the_mail_leads_through_the_managers_decision() -> None:
    assert {source for source, target in EDGES if target == "send"} == {"ask"}
    assert {source for source, target in EDGES if target == "ask"} == {"draft"}


def test_nothing_follows_the_mail_in_which_the_run_could_still_fail() -> None:
    assert {target for source, target in EDGES if source == "send"} == {"__end__"}


def test_every_ticket_of_the_file_is_an_input_of_the_graph() -> None:
    for ticket in load_tickets():
        assert set(ticket) == set(TicketInput.__annotations__)


def test_a_bad_ticket_stops_in_the_first_step() -> None:
    with pytest.raises(TicketRefused, match="'from' is not a mail address"):
        read({"ticket_id": "T-1", "from": "nobody", "subject": "", "body": ""})
