"""What we do to LangGraph's own rows and to the counters its checkpoints reset."""

from __future__ import annotations

from collections.abc import Sequence

from celegraph.ledger.pen import Pen
from celegraph.ledger.queries import load

Q = load("checkpoints")


async def forget_writes(pen: Pen, run_id: str, checkpoint_id: str, task_ids: Sequence[str]) -> None:
    """Drop the half-written results of tasks whose router failed; they run again.  Fenced."""
    await pen.fetch(
        Q.forget_writes,
        {"run_id": run_id, "checkpoint_id": checkpoint_id, "task_ids": list(task_ids)},
    )


async def retries_so_far(pen: Pen, run_id: str) -> int:
    """How often this step has been put to sleep for a transient error."""
    row = await pen.fetch_one(Q.retries_so_far, {"run_id": run_id})
    return 0 if row is None else int(row["retry_count"])
