"""F39: one undeliverable address must not send to all the good ones again."""

from __future__ import annotations

import smtplib
from collections import Counter
from pathlib import Path

from celegraph import Agent, EffectCall, RetryPolicy, effect
from celegraph.contrib.providers import smtp
from celegraph.dev.mailbox import smtp_server
from celegraph.testing.driver import Driver
from tests.support.log import Log
from tests.support.shapes import State, chain

PEOPLE = [f"{name}@shop.example" for name in ("ana", "ben", "nobody", "dora", "emil")]


def test_four_get_one_mail_each_and_the_run_names_the_fifth(drive: Driver, tmp_path: Path, log: Log) -> None:
    with smtp_server(tmp_path, refuse=["nobody@shop.example"]) as server:

        @effect("mail", in_doubt="reconcile", lookup=smtp.look_up_in_log(server.log, "shop.example"))
        def mail(call: EffectCall, to: str) -> str:
            sender = "contracts@shop.example"
            message = smtp.compose(call, sender=sender, to=to, subject="Your contract", text="Signed.")
            return smtp.send(call, message, server.url)

        def node(state: State) -> None:
            log("node")
            refused = []
            for person in PEOPLE:
                try:
                    mail(person)
                except smtplib.SMTPRecipientsRefused as error:
                    refused.append(error)
            if refused:
                raise refused[0]

        retry = RetryPolicy(max_attempts=4, retry_on=("smtplib.SMTPRecipientsRefused",))
        run = drive(Agent(graph=chain(node), retry=retry), {})
        delivered = Counter(address for d in server.deliveries() for address in d.to)

    assert log.count("node") == 4
    assert delivered == {person: 1 for person in PEOPLE if "nobody" not in person}
    assert [(a.args["to"], a.status, a.attempts) for a in run.effects if a.status != "sent"] == [
        ("nobody@shop.example", "failed", 4)
    ]
    assert run.status == "failed"
    assert "nobody@shop.example" in run.run.error["message"]
