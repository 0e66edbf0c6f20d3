"""What the tests of the streaming view need from the project; see `run_scene`."""

from __future__ import annotations

import uuid

from django.test import Client

import celegraph
from tests.django.project.shop.models import Order


def eager_run() -> str:
    """A finished run of "pack"."""
    order = Order.objects.create(number=uuid.uuid4().hex)
    run_id: str = celegraph.start_run.delay("pack", {"order": order.number}).id
    return run_id


def over_wsgi() -> tuple[int, str]:
    """The answer of the same view in a WSGI process."""
    answer = Client().get("/runs/any/events")
    return answer.status_code, answer.content.decode()
