"""The ledger's tables by way of `manage.py migrate`: the same SQL and lock as `celegraph migrate`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from django.apps.registry import Apps
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import operations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState

from celegraph.agent.migrate import migrate
from celegraph.contrib.django.settings import ledger_alias, ledger_config
from celegraph.errors import SchemaMissing
from celegraph.ledger.pool import ledger

logger = logging.getLogger("celegraph")


def migrate_ledger(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Bring the ledger up to date, on a connection of its own.  Twice or in parallel is harmless.

    Runs with the migrations of `CELERY_CELEGRAPH["database"]` (else of the default database), wherever
    `database_url` points.
    """
    if schema_editor.connection.alias == ledger_alias():
        config = ledger_config()
        migrate(config.database_url, config.schema_name)


def after_the_one_before(file: str) -> list[tuple[str, str]]:
    """The dependencies of a migration: the one whose number comes before, as for the ledger's own."""
    names = sorted(path.stem for path in Path(file).parent.glob("0*.py"))
    return [("celegraph", names[names.index(Path(file).stem) - 1])]


def keep_ledger(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Going back removes nothing, and says so: the tables hold what was paid and who decided."""
    logger.warning(
        "the ledger's tables are kept: they say which effects have happened, and its migrations only go up;"
        " to remove them for good, DROP SCHEMA celegraph CASCADE"
    )


def without_migrations(using: str, **_: Any) -> None:
    """Under `pytest --no-migrations` (MIGRATION_MODULES: None) the tables are made here."""
    if using != ledger_alias() or MigrationLoader.migrations_module("celegraph")[0] is not None:
        return
    config = ledger_config()
    try:
        # After every flush of a TransactionTestCase too, so first a look.
        with ledger(config):
            return
    except SchemaMissing:
        migrate(config.database_url, config.schema_name)


def read_only_models() -> list[operations.CreateModel]:
    """The models for Django's migration state; nothing happens in the database.

    Taken from the models as they are, and not frozen as usual: Django manages no table of theirs, so there
    is no history to keep, and `makemigrations` never has anything to add for somebody's schema.
    """
    from celegraph.contrib.django import models

    states = [ModelState.from_model(model) for model in models.ALL]
    return [operations.CreateModel(s.name, list(s.fields.items()), s.options) for s in states]
