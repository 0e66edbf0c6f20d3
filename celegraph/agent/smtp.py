"""Mail by SMTP: a message whose Message-ID is the effect's, sent in bounded time, found in the server's log.

    @effect("send_mail", in_doubt="reconcile", lookup=look_up, timeout="10s")
    def send_mail(call: EffectCall, to: str, subject: str, text: str) -> str:
        message = smtp.compose(call, sender="shop@shop.example", to=to, subject=subject, text=text)
        return smtp.send(call, message, "smtp://mail.shop.example:587")

One recipient per effect: a server may take some of several and refuse others.
"""

from __future__ import annotations

import contextlib
import json
import smtplib
import ssl
import time
from collections.abc import Callable
from email.message import EmailMessage
from email.utils import formatdate, parseaddr
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from celegraph.agent.declaration import EffectCall, Found, Happened, NotHappened, Unknown
from celegraph.errors import EffectNotDone, InvalidValue
from celegraph.ledger.keys import message_id

# Of the effect's timeout.  After it a look-up may conclude that nothing was sent: no byte may follow.
_PART_OF_TIMEOUT = 0.8


def compose(
    call: EffectCall,
    *,
    sender: str,
    to: str,
    subject: str,
    text: str,
    html: str | None = None,
    domain: str | None = None,
) -> EmailMessage:
    """The message, the same on every attempt except for its date.

    `html` is shown instead of `text` where it can be.  `domain` (by default the sender's) ends the
    Message-ID: keep it when the sender changes.  EffectNotDone for an address or subject that would forge
    headers.
    """
    for name, value in (("sender", sender), ("to", to)):
        if not is_address(value):
            raise EffectNotDone(f"{name}: not a mail address: {value!r}")
    if has_line_break(subject):
        raise EffectNotDone("the subject must be a single line")
    try:
        name = message_id(call.key, domain or sender.rpartition("@")[2])
    except InvalidValue as error:
        raise EffectNotDone(str(error)) from error
    message = EmailMessage()
    message["From"] = sender
    message["To"] = to
    message["Subject"] = subject
    message["Date"] = formatdate()
    message["Message-ID"] = name
    message["X-Celegraph-Run"] = call.run_id
    message.set_content(text)
    if html is not None:
        message.add_alternative(html, subtype="html")
        message.set_boundary(f"={call.key}=")  # else a random one
    return message


def send(call: EffectCall, message: EmailMessage, url: str, *, seconds: float | None = None) -> str:
    """Hand `message` to the server at `url`; returns its Message-ID once the server has answered 250.

    smtp://host:port, with user:password@ only over STARTTLS; smtps:// speaks TLS from the start.  The
    whole conversation takes at most `seconds`, by default four fifths of the effect's timeout.
    """
    limit = call.timeout.total_seconds() * _PART_OF_TIMEOUT if seconds is None else seconds
    server = urlsplit(url)
    if server.scheme not in ("smtp", "smtps") or not server.hostname:
        raise EffectNotDone(f"{url!r} names no mail server; write smtp://host:port")
    client = _connected(server.scheme, server.hostname, server.port, _helo_name(message), limit)
    try:
        if server.username is not None:
            if server.scheme == "smtp":
                client.starttls(context=ssl.create_default_context())
            client.login(unquote(server.username), unquote(server.password or ""))
        client.send_message(message)
        # Accepted.  Whatever happens to the farewell must not look like a refusal of the message,
        # and its answer is not worth waiting for.
        with contextlib.suppress(OSError, smtplib.SMTPException):
            client.putcmd("quit")
    finally:
        client.close()
    call.provider_ref = str(message["Message-ID"])
    return call.provider_ref


def look_up_in_log(log: Path, domain: str) -> Callable[..., Found]:
    """A `lookup=` for a server that logs JSON lines with the "message_id" of what it accepted."""

    def look_up(call: EffectCall, **_: Any) -> Found:
        wanted = message_id(call.key, domain)
        try:
            accepted = was_accepted(log, wanted)
        except (OSError, ValueError) as error:
            return Unknown(f"the mail server's log cannot be read: {error}")
        return Happened(wanted, wanted) if accepted else NotHappened()

    return look_up


def was_accepted(log: Path, wanted: str) -> bool:
    """Whether the log has a line for the message of this Message-ID.

    OSError or ValueError when a "no" would be a guess: no log, or a line in it is damaged.
    """
    damaged = 0
    # Not splitlines(): JSON leaves characters unescaped that Python takes for line ends.
    *lines, unfinished = log.read_text(encoding="utf-8").split("\n")
    for line in lines:
        try:
            if json.loads(line)["message_id"] == wanted:
                return True
        except (ValueError, KeyError, TypeError):
            damaged += 1
    if damaged or unfinished:
        raise ValueError(f"{log}: {damaged + bool(unfinished)} damaged lines")
    return False


def is_address(text: str) -> bool:
    """One plain mail address, without a display name and without anything else beside it."""
    local, at, host = text.rpartition("@")
    plain = not any(c in text for c in " \t<>,;:\"'()[]") and not has_line_break(text)
    return bool(local and at and host and plain and "@" not in local) and parseaddr(text)[1] == text


def has_line_break(text: str) -> bool:
    """True for every character that a mail library or server could take for the end of a line."""
    return len(f"{text}.".splitlines()) > 1 or "\0" in text


def _helo_name(message: EmailMessage) -> str:
    # Without a given name smtplib asks the resolver for ours, which can take longer than we have.
    return str(message["From"]).rpartition("@")[2]


def _connected(scheme: str, host: str, port: int | None, name: str, seconds: float) -> smtplib.SMTP:
    if scheme == "smtps":
        return _TlsConversation(host, port or 465, name, seconds)
    return _Conversation(host, port or 25, name, seconds)


class _Bounded(smtplib.SMTP):
    """Makes the timeout cover the whole conversation, not each answer."""

    ends_at: float

    def send(self, s: Any) -> None:
        self._tighten()
        super().send(s)

    def getreply(self) -> tuple[int, bytes]:
        self._tighten()
        return super().getreply()

    def _tighten(self) -> None:
        left = self.ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError("the mail server took too long")
        if self.sock:
            self.sock.settimeout(left)


class _Conversation(_Bounded):
    def __init__(self, host: str, port: int, local_hostname: str, seconds: float):
        self.ends_at = time.monotonic() + seconds
        super().__init__(host, port, local_hostname, timeout=seconds)


class _TlsConversation(_Bounded, smtplib.SMTP_SSL):
    def __init__(self, host: str, port: int, local_hostname: str, seconds: float):
        self.ends_at = time.monotonic() + seconds
        context = ssl.create_default_context()
        smtplib.SMTP_SSL.__init__(self, host, port, local_hostname, timeout=seconds, context=context)
