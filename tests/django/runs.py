"""Runs of the project at rest, to look at and to change; used by scenes."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg

import celegraph
from celegraph.tasks.installation import installation

_DOUBT = """
INSERT INTO effects (idempotency_key, run_id, step, tool, slot, args_hash, args, doubt_after)
VALUES (%(run_id)s, %(run_id)s, '1', 'pay', '1', 'h', %(args)s, now() - interval '1 minute')
"""


def waiting_run(agent: str = "refund", **given: Any) -> str:
    """A run that waits for a person's answer; nothing is in the broker for it."""
    run_id = str(given.pop("run_id", uuid.uuid4().hex))
    installation().app.conf.task_always_eager = True
    celegraph.start_run.delay(agent, {"order": "A-1", "cents": 5}, run_id=run_id, **given)
    installation().app.conf.task_always_eager = False
    return run_id


def put(run_id: str, status: str) -> str:
    """The run at rest with another status."""
    finished = "now()" if status == "failed" else "NULL"
    with _connected() as conn:
        conn.execute(
            f"UPDATE runs SET status = %s, waits_for = NULL, finished_at = {finished} WHERE run_id = %s",
            [status, run_id],
        )
    return run_id


def doubted(run_id: str, args: str = '{"cents": 5}') -> str:
    """An effect in doubt of this run, whose key is the run's id."""
    with _connected() as conn:
        conn.execute(_DOUBT, {"run_id": run_id, "args": args})
    return run_id


def _connected() -> psycopg.Connection[tuple[object, ...]]:
    config = installation().config
    return psycopg.connect(config.database_url, options=f"-c search_path={config.schema_name}")
