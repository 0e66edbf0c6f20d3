"""What we do to LangGraph's own rows and to the counters its checkpoints reset."""

from __future__ import annotations

from celegraph.ledger.pen import Pen
from celegraph.ledger.queries import load

Q = load("checkpoints")


async def forget_failures(pen: Pen, run_id: str) -> None:
    """Drop what failed tasks left behind; they start over.  Fenced."""
    await pen.fetch(Q.forget_failures, {"run_id": run_id})


async def retries_so_far(pen: Pen, run_id: str) -> int:
    """How often this step has been put to sleep for a transient error."""
    row = await pen.fetch_one(Q.retries_so_far, {"run_id": run_id})
    return 0 if row is None else int(row["retry_count"])
