"""The agent's one effect: an e-mail that is sent once, and how to find out whether it was.

`SUPPORT_SMTP_URL` (smtp://host:port, or smtp://user:password@host:port, then only over TLS) names
the server, `SUPPORT_MAIL_FROM` the sender, `SUPPORT_MAIL_LOG` the server's log: JSON lines that
hold a "message_id" for each message it accepted.
"""

from __future__ import annotations

import os
from pathlib import Path

from celegraph import EffectCall, Happened, NotHappened, Unknown, effect
from celegraph.contrib.providers import smtp

# Part of each Message-ID, and so of what a look-up searches for: not taken from the sender's address,
# which the environment may change between two attempts.
DOMAIN = "celegraph.example"


def look_up_mail(call: EffectCall, to: str, subject: str, body: str) -> Happened | NotHappened | Unknown:
    """Did the mail server accept this call's message?  Its log knows."""
    log = os.environ.get("SUPPORT_MAIL_LOG")
    if not log:
        return Unknown("SUPPORT_MAIL_LOG is not set, so nobody can say what the mail server did")
    return smtp.look_up_in_log(Path(log), DOMAIN)(call)


@effect("send_mail", in_doubt="reconcile", lookup=look_up_mail, timeout="5s")
def send_mail(call: EffectCall, to: str, subject: str, body: str) -> str:
    """Send one e-mail; returns its Message-ID, which is the same on every attempt."""
    sender = os.environ.get("SUPPORT_MAIL_FROM", f"support@{DOMAIN}")
    message = smtp.compose(call, sender=sender, to=to, subject=subject, text=body, domain=DOMAIN)
    return smtp.send(call, message, os.environ.get("SUPPORT_SMTP_URL", ""))
