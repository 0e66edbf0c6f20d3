"""What was bought, and what is claimed back."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Order(models.Model):
    """One order of one customer."""

    number: models.CharField[str, str] = models.CharField(max_length=20, unique=True)
    customer: models.ForeignKey[object, object] = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    what: models.CharField[str, str] = models.CharField(max_length=200)
    cents: models.PositiveIntegerField[int, int] = models.PositiveIntegerField()
    urgent: models.BooleanField[bool, bool] = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.number


class Claim(models.Model):
    """A customer wants the money back; `outcome` is written by the agent's last step."""

    order: models.OneToOneField[Order, Order] = models.OneToOneField(Order, models.CASCADE)
    reason: models.TextField[str, str] = models.TextField()
    run_id: models.CharField[str, str] = models.CharField(max_length=200, unique=True)
    outcome: models.TextField[str, str] = models.TextField(blank=True)

    def __str__(self) -> str:
        return self.run_id
