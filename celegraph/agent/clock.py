"""LangGraph's checkpoint ids, which order a run's checkpoints, are times of the host that writes.

A run that moves to a host whose clock is behind would hide its progress: its new checkpoints would sort
before the old ones.  So ids go on from the newest one read, as a logical clock does; no two hosts'
clocks are compared.
"""

from __future__ import annotations

from uuid import UUID

from langgraph.checkpoint.base import id as checkpoint_ids


def catch_up(checkpoint_id: str) -> None:
    """From now on this process's ids sort after this one.

    Through a private name of LangGraph's, held by a contract test.  Should it fail, or another thread be
    faster, the saver refuses the checkpoint (`ClockBehind`) and the step is tried again.
    """
    seen = UUID(checkpoint_id)
    if seen.version != 6:
        return
    # The fields of uuid6: 48 bits of time, four of version, 12 bits of time.
    moment = (seen.int >> 80) << 12 | (seen.int >> 64) & 0x0FFF
    last: int | None = checkpoint_ids._last_v6_timestamp
    if last is None or last < moment:
        checkpoint_ids._last_v6_timestamp = moment  # type: ignore[assignment]  # None at first
