"""The app: what Django must tell celegraph, and what celegraph must do at Django's moments."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks as registry
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate

from celegraph.contrib.django import cleaning, schema, settings
from celegraph.tasks import framework, hooks, transactions


class CelegraphConfig(AppConfig):
    """`manage.py migrate celegraph`, `manage.py check`, and models to read."""

    name = "celegraph.contrib.django"
    label = "celegraph"
    verbose_name = "celegraph"

    def ready(self) -> None:
        """Once per process; nothing here connects to a database or imports LangGraph."""
        from celegraph.contrib.django import checks
        from celegraph.contrib.django.joining import open_transaction

        framework.use(framework.Framework(settings.options, settings.ledger_database_url, settings.OWN_KEYS))
        transactions.register("django", open_transaction)
        for check in checks.ALL:
            registry.register(check, "celegraph")
        for hook_list, hook in (
            (hooks.around_node, cleaning.clean_node_thread),
            (hooks.around_attempt, cleaning.clean_async_orm),
        ):
            if hook not in hook_list:
                hook_list.append(hook)
        post_migrate.connect(schema.without_migrations, sender=self, dispatch_uid="celegraph.schema")
        connection_created.connect(cleaning.let_go_of_test_database, dispatch_uid="celegraph.let_go")
