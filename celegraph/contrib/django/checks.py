"""What `manage.py check` says about celegraph.  Nothing here connects to a database."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections

from celegraph.contrib.django.permissions import rule
from celegraph.contrib.django.settings import ledger_alias, ledger_config, options
from celegraph.errors import ConfigError, NotInstalled
from celegraph.tasks.framework import default_database
from celegraph.tasks.installation import installation


def check_database(**_: Any) -> list[CheckMessage]:
    """The ledger's database must be able to hold runs, and had better be the application's too."""
    try:
        alias = ledger_alias()
    except ImproperlyConfigured as error:
        return [Error(str(error), hint="Name an entry of DATABASES there.", id="celegraph.E004")]
    default, name = connections[DEFAULT_DB_ALIAS], _name_of(alias)
    if default_database(_given()) is not None and connections[alias].vendor != "postgresql":
        return [
            Error(
                f"celegraph cannot keep runs in the {alias} database: {name} has no session locks that end"
                " with their owner.",
                hint=f"Set DATABASES['{alias}']['ENGINE'] to 'django.db.backends.postgresql', or give"
                " celegraph a PostgreSQL of its own: CELERY_CELEGRAPH = {'database_url': 'postgresql://...'}"
                " or {'database': 'an entry of DATABASES'}",
                id="celegraph.E001",
            )
        ]
    if default.vendor == "postgresql" and alias == DEFAULT_DB_ALIAS:
        return []
    return [
        Warning(
            "start_run.delay() and decide() cannot join a transaction of the default database"
            f" ({_name_of(DEFAULT_DB_ALIAS)}).",
            hint="A run started in transaction.atomic() stays when the block is rolled back."
            " Keep application and ledger in one PostgreSQL.",
            id="celegraph.W001",
        )
    ]


def check_permissions(**_: Any) -> list[CheckMessage]:
    """A rule that cannot be imported would close every page; say so before somebody stands there."""
    try:
        rule()
    except ImproperlyConfigured as error:
        return [Error(str(error), hint="See CELERY_CELEGRAPH in the settings.", id="celegraph.E005")]
    return []


def check_driver(**_: Any) -> list[CheckMessage]:
    """psycopg2's connections cannot be shared with psycopg 3, which celegraph uses."""
    if connections[DEFAULT_DB_ALIAS].vendor != "postgresql":
        return []
    from django.db.backends.postgresql import psycopg_any

    if psycopg_any.is_psycopg3:
        return []
    return [
        Error(
            "Django uses psycopg2, whose transactions celegraph cannot join.",
            hint="pip install 'psycopg[binary]>=3.3'; Django prefers it as soon as it is there, and psycopg2"
            " can then be uninstalled.",
            id="celegraph.E002",
        )
    ]


def check_options(**_: Any) -> list[CheckMessage]:
    """`CELERY_CELEGRAPH` must be right; the message names the key and a likely spelling."""
    if any(found.id in ("celegraph.E001", "celegraph.E004") for found in check_database()):
        return []  # said already, in Django's words
    try:
        ledger_config()
    except ConfigError as error:
        return [Error(str(error), hint="See CELERY_CELEGRAPH in the settings.", id="celegraph.E003")]
    return []


def check_installed(**_: Any) -> list[CheckMessage]:
    """Web processes start runs too, so they must import the Celery app."""
    try:
        installation()
    except NotInstalled as error:
        return [
            Warning(
                str(error),
                hint="And import it in the project's __init__.py: from .celery import app as celery_app",
                id="celegraph.W002",
            )
        ]
    return []


def _given() -> dict[str, object]:
    try:
        return dict(installation().app.conf.get("celegraph") or options())
    except NotInstalled:
        return dict(options())


def _name_of(alias: str) -> str:
    wrapper = connections[alias]
    return str(getattr(wrapper, "display_name", wrapper.vendor))


ALL = (check_database, check_driver, check_options, check_permissions, check_installed)
