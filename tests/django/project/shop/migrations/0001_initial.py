"""The orders."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """As `makemigrations` writes it."""

    initial = True
    operations = (
        migrations.CreateModel(
            "Order",
            [
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("number", models.CharField(max_length=40)),
                ("packed", models.IntegerField(default=0)),
            ],
        ),
    )
