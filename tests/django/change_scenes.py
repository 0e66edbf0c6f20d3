"""Everything a person can change, in one block with a row of the shop; see `run_scene`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import psycopg
import redis
from django.conf import settings
from django.db import transaction

import celegraph
from celegraph.tasks.installation import installation
from tests.django.project.shop.models import Order
from tests.django.runs import doubted, put, waiting_run


class Undone(Exception):
    """Rolls a block back."""


def changes(end: str) -> dict[str, Any]:
    """What others see of each run inside a block with all changes, and after its `end`."""
    runs = {name: _run(name) for name in _CHANGES}
    asked = celegraph.list_approvals(run_id=runs["reject and cancel"])[0].approval_id
    inside: dict[str, Any] = {}
    try:
        with transaction.atomic():
            Order.objects.create(number="with the changes")
            celegraph.decide(asked, "reject", by="ada")
            for name, change in _CHANGES.items():
                change(runs[name])
            inside.update(_seen(runs))
            if end == "rollback":
                raise Undone
    except Undone:
        pass
    return {"inside": inside, "after": _seen(runs), "orders": Order.objects.count()}


_CHANGES: Mapping[str, Callable[[str], object]] = {
    "reject and cancel": celegraph.cancel_run,
    "pause": celegraph.pause_run,
    "resume": lambda run_id: celegraph.resume_run(run_id, by="ada"),
    "retry": lambda run_id: celegraph.retry_run(run_id, by="ada"),
    "release": lambda run_id: celegraph.release_run(run_id, by="ada"),
    "resolve": lambda run_id: celegraph.resolve_effect(run_id, "happened", ref="r", by="ada"),
    "confirm": lambda run_id: celegraph.confirm_effect(run_id),
    "fail": lambda run_id: celegraph.fail_effect(run_id, reason="no"),
}
_BEFORE = {
    "resume": "paused",
    "retry": "failed",
    "release": "quarantined",
}


def _run(name: str) -> str:
    """A run that waits for a person, or stands as `_BEFORE` says; its effect in doubt has its name."""
    run_id = doubted(waiting_run())
    return put(run_id, _BEFORE[name]) if name in _BEFORE else run_id


def _seen(runs: Mapping[str, str]) -> dict[str, list[Any]]:
    """Run status, effect status, and whether it was rung, as another process sees them."""
    with redis.Redis.from_url(str(settings.CELERY_BROKER_URL)) as client:
        messages = b" ".join(client.lrange("celegraph", 0, -1))
    with psycopg.connect(installation().config.database_url) as conn:
        rows = conn.execute(
            "SELECT run_id, r.status, e.status FROM celegraph.runs r JOIN celegraph.effects e USING (run_id)"
        ).fetchall()
    found = {run_id: [run, effect, run_id.encode() in messages] for run_id, run, effect in rows}
    return {name: found[run_id] for name, run_id in runs.items()}
