"""What the shop sells."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    """One order."""

    number: models.CharField[str, str] = models.CharField(max_length=40)
    packed: models.IntegerField[int, int] = models.IntegerField(default=0)
