"""What happens in the project's web processes; see `run_scene`."""

from __future__ import annotations

import asyncio
import sys
import uuid
from threading import Thread
from typing import Any

import psycopg
import redis
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection, connections, transaction

import celegraph
from celegraph.errors import RunConflict
from celegraph.ledger.pool import ledger
from celegraph.tasks.installation import installation
from tests.django.project.shop.models import Order
from tests.support.waiting import eventually

INPUT = {"order": "A-1"}


class Undone(Exception):
    """Rolls a block back."""


def configuration() -> dict[str, Any]:
    inst = installation()
    with ledger(inst.config) as conn:
        row = conn.execute("SELECT current_database() AS name").fetchone()
    assert row is not None
    return {
        "arrived": inst.app.conf.get("celegraph"),
        "sweep_every": inst.config.sweep_every.total_seconds(),
        "database_url": inst.config.database_url,
        "database": row["name"],
    }


def moved_database() -> list[str]:
    found = []
    for name in ("first", "second"):
        # What Django's create_test_db and pytest-django do.
        connection.settings_dict["NAME"] = name
        found.append(installation().config.database_url.rpartition("/")[2].partition("?")[0])
    return found


def connects_alike() -> dict[str, Any]:
    query = b"SELECT session_user::text AS a, current_user::text AS b, current_database()::text AS c"
    with connection.cursor() as cursor:
        cursor.execute(query.decode())
        django = list(cursor.fetchone())
    with psycopg.connect(installation().config.database_url) as conn:
        row = conn.execute(query).fetchone()
    assert row is not None
    return {"django": django, "ledger": list(row)}


def web_process() -> dict[str, Any]:
    with transaction.atomic():
        result = celegraph.start_run.delay("pack", INPUT)
    assert celegraph.list_approvals() == []
    return {
        "status": result.status,
        "langgraph": "langgraph" in sys.modules,
        "langchain": "langchain_core" in sys.modules,
    }


# -- joining the open transaction ------------------------------------------------------------------


def joins(end: str) -> dict[str, Any]:
    """Order and run in one block that ends by "commit", "rollback" or an inner block's rollback."""
    run_id = uuid.uuid4().hex
    inside: dict[str, Any] = {}

    def both() -> None:
        Order.objects.create(number=run_id)
        celegraph.start_run.delay("pack", {"order": run_id}, run_id=run_id)
        inside.update(_seen(run_id))
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*), current_setting('search_path') FROM celegraph.runs")
            inside["own"], inside["search_path"] = cursor.fetchone()
        if end != "commit":
            raise Undone

    try:
        with transaction.atomic():
            if end == "savepoint":
                try:
                    with transaction.atomic():
                        both()
                except Undone:
                    Order.objects.create(number="after the inner block")
            else:
                both()
    except Undone:
        pass
    return {"inside": inside, "after": _seen(run_id)}


def joins_by_hand() -> dict[str, Any]:
    run_id = uuid.uuid4().hex
    transaction.set_autocommit(False)
    celegraph.start_run.delay("pack", INPUT, run_id=run_id)
    transaction.rollback()
    rolled_back = _seen(run_id)
    celegraph.start_run.delay("pack", INPUT, run_id=run_id)
    transaction.commit()
    return {"rolled_back": rolled_back, "committed": _seen(run_id)}


def not_on_another_database() -> dict[str, Any]:
    run_id = uuid.uuid4().hex
    try:
        with transaction.atomic(using="other"):
            with connections["other"].cursor() as cursor:
                cursor.execute("SELECT 1")
            celegraph.start_run.delay("pack", INPUT, run_id=run_id)
            raise Undone
    except Undone:
        pass
    return _seen(run_id)


def joins_only(alias: str) -> dict[str, bool]:
    """For a block on each database that is rolled back: whether its run stayed."""
    stayed = {}
    for using in (alias, "default"):
        run_id = uuid.uuid4().hex
        try:
            with transaction.atomic(using=using):
                celegraph.start_run.delay("pack", INPUT, run_id=run_id)
                raise Undone
        except Undone:
            stayed[using] = bool(_seen(run_id)["exists"])
    return stayed


def conflict() -> dict[str, Any]:
    """A run_id that stands for something else is refused, and the block can go on."""
    celegraph.start_run.delay("pack", INPUT, run_id="taken")
    with transaction.atomic():
        try:
            celegraph.start_run.delay("pack", {"order": "B-2"}, run_id="taken")
        except RunConflict as error:
            what = error.what
        Order.objects.create(number="goes on")
    return {"what": what, "orders": Order.objects.count()}


def broken_block() -> str:
    """In a block that can only be rolled back nothing is started."""
    with transaction.atomic():
        transaction.set_rollback(True)
        try:
            celegraph.start_run.delay("pack", INPUT)
        except transaction.TransactionManagementError as error:
            return str(error)
    return "started"


def from_async_code() -> dict[str, Any]:
    async def view() -> dict[str, Any]:
        direct = celegraph.start_run.delay("pack", INPUT)

        def in_block() -> str:
            with transaction.atomic():
                return str(celegraph.start_run.delay("pack", INPUT).id)

        joined = await sync_to_async(in_block)()
        return {"direct": _seen(direct.id), "joined": _seen(joined)}

    return asyncio.run(view())


def decides() -> dict[str, Any]:
    """A decision falls with its block, and holds with it; jsonb is read as JSON on Django's connection."""
    installation().app.conf.task_always_eager = True
    result = celegraph.start_run.delay("refund", {"order": "A-1", "cents": 1999})
    asked = celegraph.list_approvals(run_id=result.id)[0]
    try:
        with transaction.atomic():
            undone = celegraph.decide(asked.approval_id, "reject", by="eve")
            raise Undone
    except Undone:
        still = celegraph.get_approval(asked.approval_id).status
    with transaction.atomic():
        decided = celegraph.decide(asked.approval_id, "edit", by="ada", args={"cents": 500})
        before_commit = result.status
    return {
        "undone": undone.status,
        "still": still,
        "decision": decided.approval.decision,
        "args": decided.approval.args,
        "utc": str(decided.approval.created_at.tzinfo),
        "before_commit": before_commit,
        "after": [result.status, result.result],
    }


def with_worker() -> dict[str, Any]:
    """A worker is idle while the block is open.  What it does meanwhile shows that it would have looked."""
    settle = "SELECT count(*) AS n FROM celegraph.run_events WHERE run_id = %s AND kind = 'leased'"
    Order.objects.create(number="A-1")
    with transaction.atomic():
        kept = celegraph.start_run.delay("pack", INPUT)
        _elsewhere()
        seen = _seen(kept.id)
    output = kept.get(timeout=20)
    try:
        with transaction.atomic():
            undone = celegraph.start_run.delay("pack", INPUT)
            _elsewhere()
            raise Undone
    except Undone:
        pass
    _elsewhere()
    with connection.cursor() as cursor:
        cursor.execute(settle, [kept.id])
        leased = cursor.fetchone()[0]
    return {"open": seen["exists"], "packed": output["packed"], "leased": leased, "undone": _seen(undone.id)}


def _elsewhere() -> None:
    """Another run from start to end, outside the block: the worker has emptied the queue up to it."""

    def run() -> None:
        other = celegraph.start_run.delay("refund", {"order": "x", "cents": 1})
        eventually(lambda: other.status == "waiting", within=30)
        connections.close_all()

    thread = Thread(target=run)
    thread.start()
    thread.join()


def _seen(run_id: str) -> dict[str, Any]:
    """What everybody else sees of a run: its row and its message."""
    # Whatever thread or transaction this is, a connection of its own.
    with psycopg.connect(installation().config.database_url) as conn:
        row = conn.execute("SELECT status FROM celegraph.runs WHERE run_id = %s", [run_id]).fetchone()
    with redis.Redis.from_url(str(settings.CELERY_BROKER_URL)) as client:
        waiting = client.lrange("celegraph", 0, -1)
        rung = any(run_id.encode() in message for message in waiting)
    return {"exists": row is not None, "rung": rung}
