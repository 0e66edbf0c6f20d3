"""The ledger for Django's ORM and admin: to read, filter and join, never to write (see `reading`).

The tables are the ledger's own, made by its migrations; the columns here are those worth looking at.
Keep a run_id in your own tables as text: a foreign key would bind your rows to how long runs are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from celegraph.contrib.django.reading import LedgerManager, Reading, table
from celegraph.ledger.states import APPROVAL_STATUSES, EFFECT_STATUSES, STATUSES

if TYPE_CHECKING:
    # What reading gives; there is no writing.
    from datetime import datetime

    Text = models.TextField[str, str]
    TextOrNone = models.TextField[str | None, str | None]
    Number = models.IntegerField[int, int]
    BigNumber = models.BigIntegerField[int, int]
    BigNumberOrNone = models.BigIntegerField[int | None, int | None]
    Time = models.DateTimeField[datetime, datetime]
    TimeOrNone = models.DateTimeField[datetime | None, datetime | None]
    Flag = models.BooleanField[bool, bool]
    Json = models.JSONField[Any, Any]
    OfRun = models.ForeignKey["Run", "Run"]


def _choices(statuses: Any) -> list[tuple[str, str]]:
    return [(str(status), str(status)) for status in statuses]


class Run(Reading):
    """One run of an agent."""

    instead = "start_run.delay(), cancel_run(), pause_run(), resume_run(), retry_run() or release_run()"

    run_id: Text = models.TextField(primary_key=True)
    agent: Text = models.TextField()
    status: Text = models.TextField(choices=_choices(STATUSES))
    reason: TextOrNone = models.TextField(null=True)
    waits_for: TextOrNone = models.TextField(null=True)
    input: Json = models.JSONField()
    output: Json = models.JSONField(null=True)
    error: Json = models.JSONField(null=True)
    crash_count: Number = models.IntegerField()
    hang_count: Number = models.IntegerField()
    retry_count: Number = models.IntegerField()
    wake_at: TimeOrNone = models.DateTimeField(null=True)
    deadline_at: TimeOrNone = models.DateTimeField(null=True)
    cancel_requested_at: TimeOrNone = models.DateTimeField(null=True)
    read_only: Flag = models.BooleanField()
    tags: Json = models.JSONField()
    created_at: Time = models.DateTimeField()
    updated_at: Time = models.DateTimeField()
    started_at: TimeOrNone = models.DateTimeField(null=True)
    finished_at: TimeOrNone = models.DateTimeField(null=True)

    objects: LedgerManager[Run] = LedgerManager()

    class Meta(Reading.Meta):
        managed = False
        db_table = table("runs")
        ordering = ("-created_at", "run_id")
        # The right to see covers everything of a run: its effects, approvals and events.
        default_permissions = ("view",)
        permissions = (
            ("operate_run", "Can cancel, pause, retry and release runs and resolve their effects"),
        )

    def __str__(self) -> str:
        return self.run_id


class Effect(Reading):
    """One intended act at a provider."""

    instead = "an @effect in a node, resolve_effect(), confirm_effect(), fail_effect() or release_effect()"

    idempotency_key: Text = models.TextField(primary_key=True)
    run: OfRun = models.ForeignKey(Run, models.DO_NOTHING, related_name="effects")
    step: Text = models.TextField()
    tool: Text = models.TextField()
    slot: Text = models.TextField()
    args: Json = models.JSONField()
    mode: Text = models.TextField()
    status: Text = models.TextField(choices=_choices(EFFECT_STATUSES))
    provider_ref: TextOrNone = models.TextField(null=True)
    result: Json = models.JSONField(null=True)
    error: Json = models.JSONField(null=True)
    attempts: Number = models.IntegerField()
    duplicates_prevented: Number = models.IntegerField()
    doubt_after: TimeOrNone = models.DateTimeField(null=True)
    created_at: Time = models.DateTimeField()
    updated_at: Time = models.DateTimeField()

    objects: LedgerManager[Effect] = LedgerManager()

    class Meta(Reading.Meta):
        managed = False
        db_table = table("effects")
        ordering = ("-created_at",)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.tool} {self.idempotency_key}"


class Approval(Reading):
    """One question to a person, and its answer."""

    instead = "decide(), or ask_approval() in a node"

    approval_id: Text = models.TextField(primary_key=True)
    run: OfRun = models.ForeignKey(Run, models.DO_NOTHING, related_name="approvals")
    kind: Text = models.TextField()
    prompt: Text = models.TextField()
    tool: TextOrNone = models.TextField(null=True)
    args: Json = models.JSONField(null=True)
    status: Text = models.TextField(choices=_choices(APPROVAL_STATUSES))
    decision: Json = models.JSONField(null=True)
    decided_by: TextOrNone = models.TextField(null=True)
    note: TextOrNone = models.TextField(null=True)
    decided_at: TimeOrNone = models.DateTimeField(null=True)
    deadline_at: TimeOrNone = models.DateTimeField(null=True)
    created_at: Time = models.DateTimeField()

    objects: LedgerManager[Approval] = LedgerManager()

    class Meta(Reading.Meta):
        managed = False
        db_table = table("approvals")
        ordering = ("created_at",)
        default_permissions = ()
        permissions = (("decide_approval", "Can answer the questions of agents"),)

    def __str__(self) -> str:
        return self.approval_id


class Event(Reading):
    """One thing that happened to a run; only ever added."""

    instead = "none: every transition writes its own event"

    seq: BigNumber = models.BigIntegerField(primary_key=True)
    run: OfRun = models.ForeignKey(Run, models.DO_NOTHING, related_name="events")
    at: Time = models.DateTimeField()
    epoch: BigNumberOrNone = models.BigIntegerField(null=True)
    kind: Text = models.TextField()
    data: Json = models.JSONField()

    objects: LedgerManager[Event] = LedgerManager()

    class Meta(Reading.Meta):
        managed = False
        db_table = table("run_events")
        ordering = ("seq",)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"


ALL: tuple[type[Reading], ...] = (Run, Effect, Approval, Event)
