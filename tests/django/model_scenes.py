"""The models: what they read, and that they write nothing; see `run_scene`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import celegraph
from celegraph.contrib.django.models import ALL, Approval, Effect, Event, Run
from celegraph.contrib.django.reading import ReadOnlyModel
from celegraph.tasks.installation import installation
from tests.django.runs import waiting_run


def reads() -> dict[str, Any]:
    """A run and what belongs to it, through the ORM."""
    run_id = waiting_run()
    run = Run.objects.select_related(None).get(pk=run_id)
    asked = Approval.objects.select_related("run").get(run__agent="refund", run_id=run_id)
    return {
        "run": [run.agent, run.status, run.input, run.created_at.utcoffset() is not None],
        "asked": [asked.run.status, asked.tool, asked.args, asked.status],
        "events": list(run.events.values_list("kind", flat=True))[:2],  # type: ignore[attr-defined]
        "effects": run.effects.count(),  # type: ignore[attr-defined]
        "by filter": Run.objects.filter(input__order="A-1", approvals__status="open").count(),
        "database": Run.objects.all().db,
        "schema": installation().config.schema_name,
    }


def writes() -> dict[str, str]:
    """Every way to write, and what its error says."""
    run_id = waiting_run()
    run = Run.objects.get(pk=run_id)
    before = celegraph.get_run(run_id).updated_at
    ways: dict[str, Callable[[], object]] = {
        "save": run.save,
        "delete": run.delete,
        "create": lambda: Run.objects.create(run_id="x"),
        "get_or_create": lambda: Run.objects.get_or_create(run_id="x"),
        "update_or_create": lambda: Run.objects.update_or_create(run_id=run_id),
        "bulk_create": lambda: Run.objects.bulk_create([run]),
        "bulk_update": lambda: Run.objects.bulk_update([run], ["reason"]),
        "update": lambda: Run.objects.filter(pk=run_id).update(reason="x"),
        "filtered delete": lambda: Run.objects.filter(pk=run_id).delete(),
        "save_base": lambda: run.save_base(raw=True),
        "related": lambda: run.events.create(kind="x"),  # type: ignore[attr-defined]
        "related update": lambda: run.events.update(kind="x"),  # type: ignore[attr-defined]
        "approval": lambda: Approval.objects.update(status="approved"),
        "effect": lambda: Effect.objects.update(status="sent"),
        "event": lambda: Event.objects.all().delete(),
    }
    said = {name: _refused(way) for name, way in ways.items()}
    assert celegraph.get_run(run_id).updated_at == before
    assert len(ALL) == 4
    return said


def _refused(way: Callable[[], object]) -> str:
    try:
        way()
    except ReadOnlyModel as error:
        return error.instead
    return "written"
