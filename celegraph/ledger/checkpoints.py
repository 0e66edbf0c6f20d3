"""What we do to LangGraph's own rows and to the counters its checkpoints reset."""

from __future__ import annotations

from celegraph.ledger.pen import Pen
from celegraph.ledger.queries import load

Q = load("checkpoints")


async def forget_failures(pen: Pen, run_id: str) -> None:
    """Drop what failed tasks left behind; they start over.  Fenced."""
    await pen.fetch(Q.forget_failures, {"run_id": run_id})


async def forget_writers(pen: Pen, run_id: str, namespace: str, checkpoint_id: str, channel: str) -> None:
    """Drop everything that tasks left behind which wrote to `channel`; they start over.  Fenced."""
    params = {
        "run_id": run_id,
        "namespace": namespace,
        "checkpoint_id": checkpoint_id,
        "channel": channel,
    }
    await pen.fetch(Q.forget_writers, params)


async def paths_of_tasks(pen: Pen, run_id: str, checkpoint_id: str) -> dict[str, str]:
    """The tasks that have written into this checkpoint: id -> path.  A @task's begins with its caller's."""
    rows = await pen.fetch(Q.paths_of_tasks, {"run_id": run_id, "checkpoint_id": checkpoint_id})
    return {row["task_id"]: row["task_path"] for row in rows}


async def retries_so_far(pen: Pen, run_id: str) -> int:
    """How often this step has been put to sleep for a transient error."""
    row = await pen.fetch_one(Q.retries_so_far, {"run_id": run_id})
    return 0 if row is None else int(row["retry_count"])
