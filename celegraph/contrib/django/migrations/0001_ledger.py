"""The ledger's tables and LangGraph's."""

from __future__ import annotations

from django.db import migrations

from celegraph.contrib.django.schema import keep_ledger, migrate_ledger, read_only_models


class Migration(migrations.Migration):
    """Not atomic: LangGraph builds indexes CONCURRENTLY, which waits for every open transaction."""

    initial = True
    atomic = False
    dependencies = ()
    operations = (migrations.RunPython(migrate_ledger, keep_ledger), *read_only_models())
