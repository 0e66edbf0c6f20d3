"""The support agent from ticket to mail: real search, real SMTP server, real ledger."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from celegraph.contrib.providers import smtp
from celegraph.dev.mailbox import SmtpServer, smtp_server
from celegraph.testing.driver import Driver
from examples.support.search import index_docs
from examples.support.tickets import load_tickets

GRAPH = "examples.support.agent:graph"
TICKET = load_tickets()[0]


@pytest.fixture
def server(
    tmp_path: Path, celegraph_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SmtpServer]:
    """Everything the agent reads from its environment."""
    index_docs(celegraph_database_url)
    with smtp_server(tmp_path) as running:
        monkeypatch.setenv("CELEGRAPH_DATABASE_URL", celegraph_database_url)
        monkeypatch.setenv("SUPPORT_SMTP_URL", running.url)
        monkeypatch.setenv("SUPPORT_MAIL_LOG", str(running.log))
        monkeypatch.delenv("CELEGRAPH_MODEL", raising=False)
        yield running


def test_an_approved_answer_is_sent_once_to_who_asked(server: SmtpServer, drive: Driver) -> None:
    run = drive(GRAPH, TICKET, decisions=["approve"])

    (sent,) = server.deliveries()
    assert run.output["outcome"] == "sent"
    assert sent.to == (TICKET["from"],)
    assert sent.run_id == run.run_id
    assert sent.message_id == run.output["message_id"]
    assert "docs/" in run.output["draft"]["body"]  # it quotes the documentation


def test_before_the_manager_answers_nothing_is_sent(server: SmtpServer, drive: Driver) -> None:
    run = drive(GRAPH, TICKET)

    assert run.status == "waiting"
    assert TICKET["from"] in run.approvals[0].prompt
    assert server.deliveries() == []


@pytest.mark.parametrize(("decision", "outcome"), [("reject", "rejected"), ("expire", "expired")])
def test_without_a_yes_nothing_is_sent(
    decision: str, outcome: str, server: SmtpServer, drive: Driver
) -> None:
    run = drive(GRAPH, TICKET, decisions=[decision])

    assert run.output["outcome"] == outcome
    assert server.deliveries() == []


def test_what_the_manager_edited_is_what_is_sent(server: SmtpServer, drive: Driver) -> None:
    drive(GRAPH, TICKET, decisions=[("edit", {"subject": "About your run"})])

    assert [sent.subject for sent in server.deliveries()] == ["About your run"]


def test_a_mail_whose_acceptance_was_not_heard_is_found_by_its_message_id(
    server: SmtpServer, drive: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp, "send", functools.partial(smtp.send, seconds=0.5))
    server.hold("*")  # delivered, and never told so

    run = drive(GRAPH, TICKET, decisions=["approve"])

    assert run.output["outcome"] == "sent"
    assert len(server.deliveries()) == 1
    assert [(act.status, act.attempts) for act in run.effects] == [("sent", 1)]


def test_a_bad_ticket_fails_with_the_name_of_the_field(server: SmtpServer, drive: Driver) -> None:
    run = drive(GRAPH, TICKET | {"from": "nobody"})

    assert run.status == "failed"
    assert "'from' is not a mail address" in run.run.error["message"]
