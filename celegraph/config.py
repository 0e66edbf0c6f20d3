"""The one configuration model.  Unknown keys are refused with a suggestion; durations read as "24h"."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from celegraph.channels import Channel, Secrets
from celegraph.durations import Positive as Positive
from celegraph.durations import parse_duration as parse_duration
from celegraph.errors import ConfigError


def _table(value: object) -> object:
    """In the environment a table is JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None


def _address(value: str) -> str:
    """An absolute address, without the slash at its end."""
    if not value:
        return value
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("is an address like https://shop.example/agents")
    return value.rstrip("/")


Table = Annotated[dict[str, Any], BeforeValidator(_table)]
SiteUrl = Annotated[str, AfterValidator(_address)]


class Config(BaseModel):
    """Source: `app.conf.celegraph` (Django: `CELERY_CELEGRAPH`), then `CELEGRAPH_*` in the environment."""

    # Its input holds a database's password and the secret of links: no error may show it.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    database_url: str = ""
    schema_name: str = Field("celegraph", alias="schema", pattern=r"^[a-z_][a-z0-9_]{0,62}$")
    lease: Positive = timedelta(seconds=60)
    beat_every: Positive = timedelta(seconds=10)
    hang_after: Positive = timedelta(minutes=10)
    sweep_every: Positive = timedelta(seconds=1)
    max_crashes: int = Field(3, ge=1)
    call_window: Positive = timedelta(seconds=5)
    effect_timeout: Positive = timedelta(seconds=60)
    publish_timeout: Positive = timedelta(seconds=2)
    queue: str = Field("celegraph", min_length=1)
    control_queue: str = Field("celegraph.control", min_length=1)
    max_value_bytes: int = Field(1024 * 1024, ge=1024)
    approval: Table = Field(default_factory=dict)
    max_concurrency: int = Field(32, ge=1)
    stream_url: str = Field("", pattern=r"^$|^(rediss?|unix)://")
    stream_keep: Positive = timedelta(hours=1)
    stream_max_chunks: int = Field(10_000, ge=100)
    site_url: SiteUrl = ""
    link_secret: Secrets = ()
    channels: Annotated[dict[str, Channel], BeforeValidator(_table)] = Field(default_factory=dict)
    # None: nothing is ever removed, unless `celegraph prune` is told otherwise.
    retention: Positive | None = None
    event_retention: Positive | None = None


KEYS = sorted(field.alias or name for name, field in Config.model_fields.items())


def load_config(given: Mapping[str, object] | None = None) -> Config:
    """The host's settings over the environment's.  ConfigError names the key and a likely spelling."""
    values: dict[str, object] = {
        key: os.environ[name] for key in KEYS if (name := f"CELEGRAPH_{key.upper()}") in os.environ
    }
    for key in given or {}:
        if key not in KEYS:
            close = difflib.get_close_matches(key, KEYS, n=1)
            meant = f", did you mean {close[0]!r}?" if close else f" (known: {', '.join(KEYS)})"
            raise ConfigError(f"celegraph: unknown option {key!r}{meant}")
    values.update(given or {})
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"celegraph: option {where!r}: {first['msg']}") from error
    _check_url(config.database_url)
    if config.beat_every * 2 > config.lease:
        # One late beat must not look like a death.
        raise ConfigError("celegraph: option 'lease' must be at least twice 'beat_every'")
    return config


def _check_url(url: str) -> None:
    if not url:
        raise ConfigError(
            "celegraph: option 'database_url' is not set; give the PostgreSQL the application uses,"
            " as postgresql://user:password@host:5432/name, or CELEGRAPH_DATABASE_URL"
        )
    if url.startswith("sqlite"):
        raise ConfigError(
            "celegraph: SQLite cannot hold runs (no session locks, no row locks);"
            " point 'database_url' at a PostgreSQL"
        )
    if not url.startswith(("postgresql://", "postgres://")):
        raise ConfigError("celegraph: option 'database_url' must start with postgresql://")
