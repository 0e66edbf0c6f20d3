"""Signed links: one person's way to one question, without an account.

A link says who it was sent to and which question it opens, and nothing else.  It shows a question and
never decides one: mail scanners and chat previews follow links.  Whoever holds it may answer as that
person, so it is signed, ends with its question, and is never stored or logged.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from itsdangerous import BadData, URLSafeSerializer

from celegraph.config import Config
from celegraph.errors import ConfigError, LinkExpired, LinkForged
from celegraph.tasks.installation import Installation

# Of a link to a question without a deadline; the next reminder brings a new one.
LIVES = timedelta(days=30)
_SALT = "celegraph.approval-link.1"
# A signed link in a mail is a few hundred characters; nobody shall make us hash megabytes.
_LONGEST = 4_000


@dataclass(frozen=True)
class SignedLink:
    """What a link says: this question, asked of this person."""

    approval_id: str
    person: str


def sign_link(
    where: Installation | Config, approval_id: str, to: str, *, expires_at: datetime | None = None
) -> str:
    """A token for `to` (as `by=` will record them) and this question, until `expires_at`.

    Without it the token lives 30 days.  Equal arguments make equal tokens when `expires_at` is given, so
    a message that is sent again is the same message.
    """
    until = expires_at if expires_at is not None else datetime.now(UTC) + LIVES
    return str(_signer(_config(where)).dumps([approval_id, to, int(until.timestamp())]))


def read_link(where: Installation | Config, token: str) -> SignedLink:
    """What a token says.  Raises `LinkForged` (nobody here has signed it) and `LinkExpired`.

    That its question is still open, the question's row says; that it can still be decided, `decide`.
    """
    config = _config(where)
    if len(token) > _LONGEST or not token.isascii():
        raise LinkForged()
    try:
        approval_id, person, until = _signer(config).loads(token)
    except (BadData, ValueError, TypeError) as error:
        raise LinkForged() from error
    if datetime.now(UTC).timestamp() >= until:
        raise LinkExpired(approval_id, datetime.fromtimestamp(until, UTC))
    return SignedLink(approval_id, person)


def link_url(where: Installation | Config, token: str) -> str:
    """Where the person clicks: `site_url`, then `/link/` and the token."""
    config = _config(where)
    if not config.site_url:
        raise ConfigError(
            "celegraph: option 'site_url' is not set; give the address under which the pages are mounted,"
            " like https://shop.example/agents"
        )
    return f"{config.site_url}/link/{quote(token)}"


def _config(where: Installation | Config) -> Config:
    return where if isinstance(where, Config) else where.config


def _signer(config: Config) -> URLSafeSerializer:
    if not config.link_secret:
        raise ConfigError(
            "celegraph: option 'link_secret' is not set; give 32 random characters or more"
            " (python -c 'import secrets; print(secrets.token_urlsafe(32))'), the same in every process"
        )
    # itsdangerous signs with its last key and accepts all; ours signs with the first.
    keys = [secret.get_secret_value() for secret in reversed(config.link_secret)]
    return URLSafeSerializer(keys, salt=_SALT, signer_kwargs={"digest_method": hashlib.sha256})
