"""What `manage.py check` says about celegraph.  Nothing here connects to a database."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, Warning
from django.db import DEFAULT_DB_ALIAS, connections

from celegraph.contrib.django.settings import ledger_config, options
from celegraph.errors import ConfigError, NotInstalled
from celegraph.tasks.framework import default_database
from celegraph.tasks.installation import installation


def check_database(**_: Any) -> list[CheckMessage]:
    """The default database must be able to hold runs, unless celegraph has one of its own."""
    wrapper = connections[DEFAULT_DB_ALIAS]
    if wrapper.vendor == "postgresql":
        return []
    name = getattr(wrapper, "display_name", wrapper.vendor)
    if default_database(_given()) is None:
        return [
            Warning(
                f"start_run.delay() and decide() cannot join a transaction of the default database ({name}).",
                hint="A run started in transaction.atomic() stays when the block is rolled back."
                " Keep application and ledger in one PostgreSQL.",
                id="celegraph.W001",
            )
        ]
    return [
        Error(
            f"celegraph cannot keep runs in the default database: {name} has no session locks that end with"
            " their owner.",
            hint="Set DATABASES['default']['ENGINE'] to 'django.db.backends.postgresql', or give celegraph a"
            " PostgreSQL of its own: CELERY_CELEGRAPH = {'database_url': 'postgresql://...'}",
            id="celegraph.E001",
        )
    ]


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
    if check_database() and default_database(_given()) is not None:
        return []  # said by E001, in Django's words
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


ALL = (check_database, check_driver, check_options, check_installed)
