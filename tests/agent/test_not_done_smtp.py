"""What an SMTP exception proves, each against a real server that speaks so."""

from __future__ import annotations

import smtplib
from collections.abc import Callable

import pytest

from celegraph import EffectCall, effect
from celegraph.agent.not_done import is_not_done
from tests.support.scripted import Conversation, Script, free_port, full_backlog, scripted

DROP = "drop"
VERBS = {
    "EHLO": "250 ok",
    "HELO": "250 ok",
    "MAIL": "250 ok",
    "RCPT": "250 ok",
    "DATA": "354 go",
    "RSET": "250 ok",
}


@effect("mail")
def mail(call: EffectCall) -> None:
    """Never called: its declaration says nothing about errors."""


def speaks(
    *, greeting: str = "220 hello", body: str = "250 accepted", quit: str = "221 bye", **verbs: str
) -> Script:
    """A mail server with these answers; DROP hangs up instead.  It acts when it says 250 to the body."""

    def script(c: Conversation) -> None:
        answers = VERBS | verbs | {"QUIT": quit}
        if greeting == DROP:
            return
        c.say(f"{greeting}\r\n")
        while line := c.read_until(b"\r\n").decode():
            answer = answers.get(line[:4].upper(), "500 what?")
            if answer == DROP:
                return
            c.say(f"{answer}\r\n")
            if line[:4].upper() == "DATA" and answer.startswith("354"):
                c.read_until(b"\r\n.\r\n")
                if body == DROP or body.startswith("250"):
                    c.act()
                if body == DROP:
                    return
                c.say(f"{body}\r\n")

    return script


def send(port: int, *, login: bool = False) -> None:
    with smtplib.SMTP("127.0.0.1", port, local_hostname="here", timeout=0.5) as client:
        if login:
            client.login("ana", "secret")
        client.sendmail("a@shop.example", ["b@shop.example"], "Subject: x\r\n\r\nbody")


def error_of(work: Callable[[], object]) -> OSError:
    try:
        work()
    except OSError as error:
        return error
    raise AssertionError("the mail was sent")


REFUSALS: dict[str, Script] = {
    "554 as its greeting": speaks(greeting="554 go away"),
    "5xx to everything": speaks(EHLO="550 no", HELO="550 no"),
    "550 at MAIL": speaks(MAIL="550 no"),
    "451 at MAIL": speaks(MAIL="451 later"),
    "421 at MAIL": speaks(MAIL="421 closing"),
    "550 at RCPT": speaks(RCPT="550 no such mailbox"),
    "450 at RCPT (greylisting)": speaks(RCPT="450 come back in five minutes"),
    "554 at DATA": speaks(DATA="554 no"),
    "451 at DATA": speaks(DATA="451 later"),
    "554 to the message": speaks(body="554 spam"),
    "451 to the message": speaks(body="451 disk full"),
    "nothing, hanging up at once": speaks(greeting=DROP),
    "nothing, hanging up at EHLO": speaks(EHLO=DROP),
    "nothing, hanging up at MAIL": speaks(MAIL=DROP),
    "nothing, hanging up at RCPT": speaks(RCPT=DROP),
}


@pytest.mark.parametrize("script", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_mail_that_the_server_refused_or_never_saw_is_not_done(script: Script) -> None:
    with scripted(script) as server:
        assert is_not_done(mail.declaration, error_of(lambda: send(server.port)))
        assert server.acts == 0


def test_a_server_that_cannot_be_reached_or_logged_in_to_has_not_sent() -> None:
    assert is_not_done(mail.declaration, error_of(lambda: send(free_port())))
    with full_backlog() as port:
        assert is_not_done(mail.declaration, error_of(lambda: send(port)))
    with scripted(speaks()) as server:
        assert is_not_done(mail.declaration, error_of(lambda: send(server.port, login=True)))
    with scripted(Conversation.hang) as server:
        assert is_not_done(mail.declaration, error_of(lambda: send(server.port)))


DOUBTS: dict[str, Script] = {
    "hangs up after the message": speaks(body=DROP),
    "says 421 to the message": speaks(body="421 closing"),
    "hangs up at DATA": speaks(DATA=DROP),
    "accepts, and says 554 to QUIT": speaks(quit="554 what?"),
    "accepts, and says 421 to QUIT": speaks(quit="421 closing"),
}


@pytest.mark.parametrize("script", DOUBTS.values(), ids=DOUBTS.keys())
def test_a_mail_that_may_have_been_accepted_is_a_doubt(script: Script) -> None:
    with scripted(script) as server:
        assert not is_not_done(mail.declaration, error_of(lambda: send(server.port)))


def test_a_server_that_hangs_after_the_message_leaves_a_doubt() -> None:
    def hangs(c: Conversation) -> None:
        speaks(body=DROP)(c)
        c.hang()

    with scripted(hangs) as server:
        assert not is_not_done(mail.declaration, error_of(lambda: send(server.port)))
        assert server.acts == 1
