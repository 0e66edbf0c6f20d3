"""The roads by which people hear of a question, as the host configures them.

    channels={
        "email": {"kind": "smtp", "url": "smtp://mail.shop.example:587", "sender": "agents@shop.example",
                  "people": {"duty-manager": "duty@shop.example"}},
        "ops": {"kind": "webhook", "url": "https://ops.example/hooks/agents", "secret": "..."},
        "sms": {"kind": "call", "call": "shop.sms:send"},
    }

How each is driven is in `celegraph.tasks.channels`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from celegraph.durations import Positive

# Shorter ones can be guessed by whoever has one link or one signature.
_SHORTEST_SECRET = 16


def _secrets(value: object) -> object:
    """One secret, or several: the first signs, all are accepted."""
    several = (value,) if isinstance(value, str | SecretStr) else value
    if not isinstance(several, list | tuple) or not all(isinstance(s, str | SecretStr) for s in several):
        raise ValueError("is a secret or a list of secrets, the newest first")
    plain = [s.get_secret_value() if isinstance(s, SecretStr) else s for s in several]
    if any(len(s) < _SHORTEST_SECRET for s in plain):
        raise ValueError(f"a secret needs at least {_SHORTEST_SECRET} characters")
    return tuple(plain)


def _mail_server(value: SecretStr) -> SecretStr:
    server = urlsplit(value.get_secret_value())
    if server.scheme not in ("smtp", "smtps") or not server.hostname:
        raise ValueError("names no mail server; write smtp://host:port or smtps://user:password@host")
    return value


def _receiver(value: SecretStr) -> SecretStr:
    receiver = urlsplit(value.get_secret_value())
    if receiver.scheme not in ("http", "https") or not receiver.hostname:
        raise ValueError("is an address like https://ops.example/hooks/agents")
    return value


def _import_path(value: str) -> str:
    module, colon, attribute = value.partition(":")
    if not (module and colon and attribute):
        raise ValueError(f"{value!r} is not an import path; write 'package.module:function'")
    return value


Secrets = Annotated[tuple[SecretStr, ...], BeforeValidator(_secrets)]
ImportPath = Annotated[str, AfterValidator(_import_path)]


class _Road(BaseModel):
    """`timeout` bounds one try.  `people` leads from a policy's names to addresses: a table, or the import
    path of a function; a name that is not in the table is taken for an address."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    timeout: Positive = timedelta(seconds=10)
    people: dict[str, str] | ImportPath = Field(default_factory=dict)


class SmtpChannel(_Road):
    """Mail.  `lookup`: the import path of a function that says whether the server has accepted a message;
    without one a mail in doubt is sent again under the same Message-ID.  `templates`: a directory."""

    kind: Literal["smtp"]
    url: Annotated[SecretStr, AfterValidator(_mail_server)]
    sender: str = Field(pattern=r"^[^@\s]+@[^@\s]+$")
    lookup: ImportPath | None = None
    templates: str | None = None


class WebhookChannel(_Road):
    """A signed POST."""

    kind: Literal["webhook"]
    url: Annotated[SecretStr, AfterValidator(_receiver)]
    secret: Annotated[Secrets, Field(min_length=1)]


class CallChannel(_Road):
    """A function of the host's.  `lookup` as for mail."""

    kind: Literal["call"]
    call: ImportPath
    lookup: ImportPath | None = None


Channel = Annotated[SmtpChannel | WebhookChannel | CallChannel, Field(discriminator="kind")]
