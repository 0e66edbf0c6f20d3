"""The app of the orders."""

from __future__ import annotations

from django.apps import AppConfig


class OrdersConfig(AppConfig):
    """Orders and claims."""

    name = "examples.django_shop.orders"
    label = "orders"
