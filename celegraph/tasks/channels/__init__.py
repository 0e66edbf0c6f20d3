"""How each kind of channel is driven: one function that tells, and perhaps one that looks up.

A channel is called with the rights and duties of an effect: `call.key` is the same on every try, an
exception that proves that nothing happened lets it be tried again, everything else is doubt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from celegraph.agent.declaration import EffectCall, Found
from celegraph.channels import CallChannel, Channel, ImportPath, SmtpChannel, WebhookChannel
from celegraph.errors import ConfigError
from celegraph.tasks.notice import Notice

Tell = Callable[[EffectCall, Notice], Any]
LookUp = Callable[[EffectCall, Notice], Found]


@dataclass(frozen=True)
class Driven:
    """A channel, ready to use.  Without `look_up` a notice in doubt is told again under the same key."""

    tell: Tell
    look_up: LookUp | None = None


def driven(channel: Channel) -> Driven:
    """The functions behind a configured channel; ConfigError when one cannot be imported."""
    match channel:
        case SmtpChannel():
            from celegraph.tasks.channels.mail import tell_by_mail

            look_up = imported(channel.lookup) if channel.lookup else None
            return Driven(lambda call, notice: tell_by_mail(channel, call, notice), look_up)
        case WebhookChannel():
            from celegraph.tasks.channels.webhook import tell_by_webhook

            return Driven(lambda call, notice: tell_by_webhook(channel, call, notice))
        case CallChannel():
            look_up = imported(channel.lookup) if channel.lookup else None
            return Driven(imported(channel.call), look_up)


def address_of(channel: Channel, to: str) -> str:
    """Where `to` is reached by this channel: from the host's table or function, else `to` itself."""
    if isinstance(channel.people, str):
        return str(imported(channel.people)(to))
    return channel.people.get(to, to)


def imported(path: ImportPath) -> Callable[..., Any]:
    """The host's function of this name."""
    module, _, attribute = path.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"celegraph: option 'channels': {path!r} cannot be imported: {error}") from error
    if not callable(found):
        raise ConfigError(f"celegraph: option 'channels': {path!r} is not a function")
    return found  # type: ignore[no-any-return]
