"""Configuration out of Django's settings: `CELERY_CELEGRAPH`, and one of the databases as a URL.

Two keys in it are the door's own: `database` names the entry of DATABASES that holds the ledger, `may` the
function that says who may do what (see `permissions`).
"""

from __future__ import annotations

import os
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

OWN_KEYS = frozenset({"database", "may"})


def options() -> Mapping[str, object]:
    """`CELERY_CELEGRAPH`, also for an app that is not configured with namespace="CELERY"."""
    given: Any = getattr(settings, "CELERY_CELEGRAPH", None)
    if given is not None and not isinstance(given, Mapping):
        raise ImproperlyConfigured("CELERY_CELEGRAPH must be a dictionary")
    return given or {}


def ledger_alias() -> str:
    """The entry of DATABASES with the ledger's tables, which the models read."""
    alias = options().get("database", DEFAULT_DB_ALIAS)
    if alias not in connections.settings:
        known = ", ".join(sorted(connections.settings))
        raise ImproperlyConfigured(f"CELERY_CELEGRAPH['database'] is {alias!r}; DATABASES has {known}")
    return str(alias)


def ledger_schema() -> str:
    """The PostgreSQL schema of the tables; read while Django loads models, so nothing else is checked yet."""
    given = options().get("schema") or os.environ.get("CELEGRAPH_SCHEMA")
    return str(given or Config.model_fields["schema_name"].default)


def ledger_database_url() -> str:
    """Where Django itself connects now; in tests that is the test database."""
    wrapper = connections[ledger_alias()]
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
