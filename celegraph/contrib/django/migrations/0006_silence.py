"""No yes by silence after the deadline."""

from __future__ import annotations

from django.db import migrations

from celegraph.contrib.django.schema import after_the_one_before, keep_ledger, migrate_ledger


class Migration(migrations.Migration):
    """Not atomic, as the first."""

    atomic = False
    dependencies = after_the_one_before(__file__)
    operations = (migrations.RunPython(migrate_ledger, keep_ledger),)
