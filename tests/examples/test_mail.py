"""The mail effect against the real local SMTP server: what is sent, and what the look-up says."""

from __future__ import annotations

import json
import smtplib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from email.message import EmailMessage
from pathlib import Path

import pytest

from celegraph import EffectCall, Happened, NotHappened, Unknown
from celegraph.contrib.providers import smtp
from celegraph.dev.mailbox import SmtpServer, smtp_server
from celegraph.errors import EffectNotDone
from examples.support import mail
from tests.support.waiting import eventually

SENT = ("ana@shop.example", "Re: Hello", "Grüße 🎉\n.\n..a line with dots\n")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmtpServer]:
    with smtp_server(tmp_path_factory.mktemp("smtp"), refuse=["no@shop.example"]) as running:
        yield running


@pytest.fixture(autouse=True)
def environment(server: SmtpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPPORT_SMTP_URL", server.url)
    monkeypatch.setenv("SUPPORT_MAIL_LOG", str(server.log))


def call(key: str, timeout: float = 5) -> EffectCall:
    """A call of the mail effect."""
    seconds = timedelta(seconds=timeout)
    return EffectCall(key=key, attempt=1, run_id="ticket-ü-17", tool="send_mail", timeout=seconds)


def send(
    key: str, to: str = SENT[0], subject: str = SENT[1], body: str = SENT[2], timeout: float = 5
) -> None:
    mail.send_mail.declaration.function(call(key, timeout), to, subject, body)


def compose(key: str) -> EmailMessage:
    to, subject, text = SENT
    return smtp.compose(call(key), sender="support@shop.example", to=to, subject=subject, text=text)


def test_a_sent_message_is_found_by_its_key_with_run_and_recipient(server: SmtpServer) -> None:
    send("key-a")

    assert mail.look_up_mail(call("key-a"), *SENT) == Happened(
        "<key-a@celegraph.example>", "<key-a@celegraph.example>"
    )
    (delivery,) = [d for d in server.deliveries() if d.message_id == "<key-a@celegraph.example>"]
    assert (delivery.to, delivery.run_id) == (("ana@shop.example",), "ticket-ü-17")


def test_a_sender_killed_between_acceptance_and_record_is_found_by_the_look_up(
    server: SmtpServer,
) -> None:
    server.hold("<key-killed@*")
    code = "from tests.examples.test_mail import send; send('key-killed')"
    sender = subprocess.Popen([sys.executable, "-c", code])
    eventually(server.held)

    sender.kill()
    sender.wait()
    server.let_go()

    assert isinstance(mail.look_up_mail(call("key-killed"), *SENT), Happened)
    ids = [delivery.message_id for delivery in server.deliveries()]
    assert ids.count("<key-killed@celegraph.example>") == 1


def test_a_message_never_sent_is_reported_as_not_happened() -> None:
    assert isinstance(mail.look_up_mail(call("key-never"), *SENT), NotHappened)


def test_the_same_call_makes_the_same_message_on_every_attempt() -> None:
    first, second = (compose("key-b") for _ in range(2))

    assert first["Message-ID"] == second["Message-ID"]
    assert first.get_content() == second.get_content() == SENT[2]


def test_an_international_address_is_delivered_to(server: SmtpServer) -> None:
    send("key-c", to="jürgen.groß@versand.example")

    assert server.deliveries()[-1].to == ("jürgen.groß@versand.example",)


@pytest.mark.parametrize("text", [None, "", '{"message_id": "<other@x>"}\nnonsense\n', '{"mess'])
def test_a_log_that_cannot_be_read_whole_is_no_proof_of_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    log = tmp_path / "mail.jsonl"
    if text is not None:
        log.write_text(text)
    monkeypatch.setenv("SUPPORT_MAIL_LOG", str(log))

    answer = mail.look_up_mail(call("key-d"), *SENT)

    if text == "":
        assert isinstance(answer, NotHappened)
    else:
        assert isinstance(answer, Unknown)
        assert "cannot be read" in answer.reason


def test_a_message_found_in_a_damaged_log_did_happen(tmp_path: Path) -> None:
    log = tmp_path / "mail.jsonl"
    log.write_text("nonsense\n" + json.dumps({"message_id": "<k@celegraph.example>"}) + "\n")

    assert smtp.was_accepted(log, "<k@celegraph.example>")


def test_without_a_log_nobody_can_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUPPORT_MAIL_LOG")

    answer = mail.look_up_mail(call("key-e"), *SENT)

    assert isinstance(answer, Unknown)
    assert "SUPPORT_MAIL_LOG" in answer.reason


@pytest.mark.parametrize(
    ("to", "subject"),
    [
        ("ana@shop.example\r\nBcc: eve@evil.example", "Hello"),
        ("ana@shop.example, eve@evil.example", "Hello"),
        ("ana@shop.example", "Hello\nBcc: eve@evil.example"),
        ("ana@shop.example", "Hello\r\n\r\nanother body"),
    ],
)
def test_forged_headers_are_refused_before_the_server_hears_of_them(
    server: SmtpServer, to: str, subject: str
) -> None:
    before = len(server.deliveries())

    with pytest.raises(EffectNotDone):
        send("key-f", to=to, subject=subject)

    assert len(server.deliveries()) == before


@pytest.mark.parametrize("url", ["", "127.0.0.1:25", "http://127.0.0.1:25"])
def test_a_missing_server_is_certainly_not_a_sent_mail(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SUPPORT_SMTP_URL", url)

    with pytest.raises(EffectNotDone, match="write smtp://host:port"):
        send("key-g")


def test_a_password_is_never_sent_without_tls(server: SmtpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPPORT_SMTP_URL", f"smtp://ana:secret@127.0.0.1:{server.port}")

    with pytest.raises(smtplib.SMTPNotSupportedError, match="STARTTLS"):
        send("key-h")


def test_a_refused_recipient_is_reported_with_the_servers_code() -> None:
    with pytest.raises(smtplib.SMTPRecipientsRefused) as refused:
        send("key-i", to="no@shop.example")

    assert refused.value.recipients["no@shop.example"][0] == 550


def test_a_server_that_drips_its_answers_cannot_stretch_the_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("SUPPORT_SMTP_URL", f"smtp://127.0.0.1:{listener.getsockname()[1]}")
        heard: list[bytes] = []
        slow = threading.Thread(target=_answer_slowly, args=(listener, heard), daemon=True)
        slow.start()
        started = time.monotonic()

        with pytest.raises((TimeoutError, smtplib.SMTPServerDisconnected)):
            send("key-j", timeout=0.6)

        assert time.monotonic() - started < 2
        slow.join(timeout=10)
    # The mail itself never left: a look-up after the timeout may trust its "no".
    assert b"Message-ID" not in b"".join(heard)


def _answer_slowly(listener: socket.socket, heard: list[bytes]) -> None:
    """Each answer comes within the timeout, all of them together do not."""
    connection, _ = listener.accept()
    with connection:
        connection.sendall(b"220 slow\r\n")
        while line := connection.recv(65536):
            heard.append(line)
            threading.Event().wait(0.2)
            try:
                connection.sendall(b"354 go\r\n" if line.startswith(b"data") else b"250 ok\r\n")
            except OSError:
                return
