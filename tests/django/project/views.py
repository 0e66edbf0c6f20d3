"""Views that start runs, as hosts write them."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.db import transaction
from django.http import HttpRequest, HttpResponse

import celegraph
from tests.django.project.shop.models import Order


def start(request: HttpRequest) -> HttpResponse:
    """An order and its run; `fail` raises after both."""
    _both(request)
    return HttpResponse("started")


@transaction.non_atomic_requests
async def astart(request: HttpRequest) -> HttpResponse:
    """The same from an async view, where Django knows no ATOMIC_REQUESTS."""

    def block() -> None:
        with transaction.atomic():
            _both(request)

    await sync_to_async(block)()
    return HttpResponse("started")


def _both(request: HttpRequest) -> None:
    run_id = request.GET["run"]
    Order.objects.create(number=run_id)
    celegraph.start_run.delay("pack", {"order": run_id}, run_id=run_id)
    if "fail" in request.GET:
        raise RuntimeError("after both were written")
