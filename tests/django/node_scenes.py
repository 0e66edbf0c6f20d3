"""Runs whose nodes use the ORM, driven inline; Django's connections are counted by the server."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import psycopg
from django.db import connections

import celegraph
from celegraph.ledger.for_tests import pass_time
from celegraph.ledger.pool import ledger
from celegraph.tasks.eager import drive_inline
from celegraph.tasks.installation import installation
from tests.django.project.shop.models import Order
from tests.support.waiting import eventually

_DJANGOS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'project'"


def many_runs(agent: str, times: str, kept: str) -> int:
    """After each run at most `kept` connections of Django's are open.  How often the order was packed."""
    number = _order()
    for _ in range(int(times)):
        assert _run(agent, number).status == "finished"
        eventually(lambda: len(_pids()) <= int(kept))
    return Order.objects.get(number=number).packed


def survives_termination(agent: str) -> dict[str, Any]:
    """The server ends Django's sessions between two runs, as a restart or a fail-over does."""
    number = _order()
    first = _run(agent, number)
    before = _pids()
    with psycopg.connect(installation().config.database_url, autocommit=True) as conn:
        for pid in before:
            conn.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    second = _run(agent, number)
    attempts = 1
    while second.status == "ready" and attempts < 4:
        with ledger(installation().config) as own:
            pass_time(own, second.id, timedelta(hours=1))
        drive_inline(installation(), second.id)
        attempts += 1
    return {
        "kept_open": len(before),
        "first": first.status,
        "second": second.status,
        "attempts": attempts,
        "packed": Order.objects.get(number=number).packed,
    }


def _order() -> str:
    number = uuid.uuid4().hex
    Order.objects.create(number=number)
    return number


def _run(agent: str, number: str) -> Any:
    connections.close_all()  # this thread's own; only node threads are looked at
    return celegraph.start_run.delay(agent, {"order": number})


def _pids() -> list[int]:
    with psycopg.connect(installation().config.database_url, application_name="looks on") as conn:
        return [pid for (pid,) in conn.execute(_DJANGOS)]
