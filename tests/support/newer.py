"""The app of the release after this one: its messages carry more, and it keeps more in the ledger."""

from __future__ import annotations

from typing import Any

import psycopg

from celegraph.ledger.connect import connect
from celegraph.tasks import bodies, ring
from tests.support import app as ours

APP = "tests.support.newer:app"
# In the log of a worker that took a message of a newer one.
HINT = "hint"


def migrate(database_url: str) -> None:
    """As `celegraph migrate` of that release does: one migration that is safe beside older workers."""
    with psycopg.connect(database_url, autocommit=True) as conn:
        for table in ("runs", "run_leases", "effects", "approvals", "run_events"):
            conn.execute(f"ALTER TABLE celegraph.{table} ADD COLUMN hint text".encode())
        conn.execute("INSERT INTO celegraph.migrations VALUES (9999, 'hint', DEFAULT, 'pre')")


def _say_more() -> None:
    send = ring._try_to_send

    def sending(inst: Any, task: Any, kwargs: Any, options: Any) -> Exception | None:
        return send(inst, task, {**kwargs, HINT: "for newer workers"}, options)

    ring._try_to_send = sending


def _keep_more() -> None:
    doorbell = bodies.run_doorbell

    def keeping(inst: Any, run_id: str) -> str:
        with connect(inst.config) as conn:
            conn.execute("UPDATE runs SET hint = 'newer' WHERE run_id = %s", (run_id,))
        return doorbell(inst, run_id)

    bodies.run_doorbell = keeping


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(name)
    _say_more()
    _keep_more()
    return ours.app
