"""`manage.py open_shop`: the demo's people, rights and orders; a second time changes nothing."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission, User
from django.core.management.base import BaseCommand

from celegraph.contrib.django.permissions import PERMISSIONS
from examples.django_shop.orders.models import Order
from examples.shop.goods import ORDERS, PEOPLE, demo_password


class Command(BaseCommand):
    """Fills an empty shop."""

    def handle(self, *_: Any, **__: Any) -> None:
        """Idempotent."""
        for person in PEOPLE:
            user, _new = User.objects.get_or_create(username=person.name, defaults={"email": person.mail})
            # Whoever may operate also sees the admin.
            user.is_staff = "operate" in person.rights
            user.set_password(demo_password())
            user.save()
            names = [PERMISSIONS[right].partition(".")[2] for right in person.rights]
            user.user_permissions.set(
                Permission.objects.filter(content_type__app_label="celegraph", codename__in=names)
            )
        for order in ORDERS:
            facts = {"what": order.what, "cents": order.cents, "urgent": order.urgent}
            customer = User.objects.get(username=order.customer)
            Order.objects.get_or_create(number=order.number, defaults={**facts, "customer": customer})
