"""Notices by mail: one recipient each, text and HTML, under the notice's own Message-ID."""

from __future__ import annotations

from jinja2 import TemplateError

from celegraph.agent import smtp
from celegraph.agent.declaration import EffectCall
from celegraph.channels import SmtpChannel
from celegraph.errors import EffectNotDone
from celegraph.tasks.channels import address_of
from celegraph.tasks.notice import Notice
from celegraph.tasks.wording import worded


def tell_by_mail(channel: SmtpChannel, call: EffectCall, notice: Notice) -> str:
    """Hand the mail to the server; returns its Message-ID once that has answered 250."""
    try:
        words = worded(notice, channel.templates)
    except TemplateError as error:
        raise EffectNotDone(f"a template of the host's is wrong: {error}") from error
    message = smtp.compose(
        call,
        sender=channel.sender,
        to=address_of(channel, notice.to),
        subject=words.subject,
        text=words.text,
        html=words.html,
    )
    return smtp.send(call, message, channel.url.get_secret_value())
