"""The agent's one effect: an e-mail that is sent once, and how to find out whether it was.

`SUPPORT_SMTP_URL` (smtp://host:port, or smtp://user:password@host:port, then only over TLS) names
the server, `SUPPORT_MAIL_FROM` the sender, `SUPPORT_MAIL_LOG` the server's log: JSON lines that
hold a "message_id" for each message it accepted.
"""

from __future__ import annotations

import contextlib
import json
import os
import smtplib
import ssl
import time
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from celegraph import EffectCall, Happened, NotHappened, Unknown, effect
from celegraph.errors import EffectNotDone
from examples.support.tickets import has_line_break, is_address

# The whole conversation must be over before the effect's timeout: after that a look-up may conclude
# that nothing was sent, and no byte of this attempt may follow.
_CONVERSATION_S = 4.0


def look_up_mail(call: EffectCall, to: str, subject: str, body: str) -> Happened | NotHappened | Unknown:
    """Did the mail server accept this call's message?  Its log knows."""
    message_id = message_id_for(call.key)
    log = os.environ.get("SUPPORT_MAIL_LOG")
    if not log:
        return Unknown("SUPPORT_MAIL_LOG is not set, so nobody can say what the mail server did")
    try:
        accepted = was_accepted(Path(log), message_id)
    except (OSError, ValueError) as error:
        return Unknown(f"the mail server's log cannot be read: {error}")
    return Happened(message_id, message_id) if accepted else NotHappened()


@effect("send_mail", in_doubt="reconcile", lookup=look_up_mail, timeout="5s")
def send_mail(call: EffectCall, to: str, subject: str, body: str) -> str:
    """Send one e-mail; returns its Message-ID, which is the same on every attempt."""
    message = compose(call, to, subject, body)
    deliver(message)
    call.provider_ref = message_id_for(call.key)
    return message_id_for(call.key)


def message_id_for(key: str) -> str:
    """The Message-ID of the effect with this key."""
    return f"<{key}@celegraph.example>"


def was_accepted(log: Path, message_id: str) -> bool:
    """Whether the log has a line for this message.

    OSError or ValueError when a "no" would be a guess: no log, or a line in it is damaged.
    """
    damaged = 0
    # Not splitlines(): JSON leaves characters unescaped that Python takes for line ends.
    *lines, unfinished = log.read_text(encoding="utf-8").split("\n")
    for line in lines:
        try:
            if json.loads(line)["message_id"] == message_id:
                return True
        except (ValueError, KeyError, TypeError):
            damaged += 1
    if damaged or unfinished:
        raise ValueError(f"{log}: {damaged + bool(unfinished)} damaged lines")
    return False


def compose(call: EffectCall, to: str, subject: str, body: str) -> EmailMessage:
    """The message, or EffectNotDone for a recipient or subject that would forge headers."""
    # A manager may have edited both since the ticket was read.
    if has_line_break(subject):
        raise EffectNotDone("the subject must be a single line")
    if not is_address(to):
        raise EffectNotDone(f"not a mail address: {to!r}")
    message = EmailMessage()
    message["From"] = _sender()
    message["To"] = to
    message["Subject"] = subject
    message["Date"] = formatdate()
    message["Message-ID"] = message_id_for(call.key)
    message["X-Celegraph-Run"] = call.run_id
    message.set_content(body)
    return message


def deliver(message: EmailMessage) -> None:
    """Hand `message` to the server; returning means that it answered 250."""
    server = urlsplit(os.environ.get("SUPPORT_SMTP_URL", ""))
    if server.scheme != "smtp" or not server.hostname:
        raise EffectNotDone("SUPPORT_SMTP_URL is not set; write smtp://host:port")
    # Without a given name smtplib asks the resolver for ours, which can take longer than we have.
    name = _sender().rpartition("@")[2]
    client = _Conversation(server.hostname, server.port or 25, name, _CONVERSATION_S)
    try:
        if server.username is not None:
            client.starttls(context=ssl.create_default_context())
            client.login(unquote(server.username), unquote(server.password or ""))
        client.send_message(message)
        # Accepted.  Whatever happens to the farewell must not look like a refusal of the message,
        # and its answer is not worth waiting for.
        with contextlib.suppress(OSError, smtplib.SMTPException):
            client.putcmd("quit")
    finally:
        client.close()


class _Conversation(smtplib.SMTP):
    """An SMTP client whose timeout covers the whole conversation, not each answer."""

    def __init__(self, host: str, port: int, local_hostname: str, seconds: float):
        self._ends_at = time.monotonic() + seconds
        super().__init__(host, port, local_hostname, timeout=seconds)

    def send(self, s: Any) -> None:
        self._tighten()
        super().send(s)

    def getreply(self) -> tuple[int, bytes]:
        self._tighten()
        return super().getreply()

    def _tighten(self) -> None:
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError("the mail server took too long")
        if self.sock:
            self.sock.settimeout(left)


def _sender() -> str:
    return os.environ.get("SUPPORT_MAIL_FROM", "support@celegraph.example")
