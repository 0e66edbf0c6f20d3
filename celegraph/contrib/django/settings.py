"""Configuration out of Django's settings: `CELERY_CELEGRAPH`, and the default database as a URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections

from celegraph.config import Config
from celegraph.errors import NotInstalled
from celegraph.ledger.url import database_url
from celegraph.tasks.framework import host_config, host_options
from celegraph.tasks.installation import installation


def options() -> Mapping[str, object]:
    """`CELERY_CELEGRAPH`, also for an app that is not configured with namespace="CELERY"."""
    given: Any = getattr(settings, "CELERY_CELEGRAPH", None)
    if given is not None and not isinstance(given, Mapping):
        raise ImproperlyConfigured("CELERY_CELEGRAPH must be a dictionary")
    return given or {}


def default_database_url() -> str:
    """Where Django itself connects now; in tests that is the test database."""
    wrapper = connections[DEFAULT_DB_ALIAS]
    if wrapper.vendor != "postgresql":
        return f"{wrapper.vendor}://"  # which the configuration refuses, with the remedy
    # Not DATABASES: back ends of other people's may add a token or a service here.
    params = wrapper.get_connection_params()
    if role := wrapper.settings_dict["OPTIONS"].get("assume_role"):
        # Django does it with SET ROLE.  The tables must belong to the same role, or it cannot join.
        escaped = str(role).replace("\\", r"\\").replace(" ", r"\ ")
        params["options"] = f"{params.get('options', '')} -c role={escaped}".strip()
    return database_url(params)


def ledger_config() -> Config:
    """The configuration runs are started with here, also before `celegraph.install` was called."""
    try:
        return installation().config
    except NotInstalled:
        return host_config(host_options(None))
