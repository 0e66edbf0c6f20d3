"""What a listener gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class StreamItem:
    """One thing that happened to a run or that it said.  `cursor`: pass it as `after=` to go on behind it.

    kind       data
    event      certain, from PostgreSQL: `event` (its kind), `seq`, `at`, and what `trace_run` shows
    token      what a model says: `text`, `id` of the message, its `type` and `content`
    custom     what a node wrote with LangGraph's `get_stream_writer()`
    progress   a node has `started`, is `done`, has `failed` or is `stopped` to ask: `state`
    retracted  what this `task` has said so far no longer counts: it is run again
    lost       chunks are missing here: `chunks` (how many, None when nobody knows) and `why`
    idle       nothing has happened for as long as was asked
    end        the run has ended: `status`.  The last item
    """

    kind: str
    cursor: str
    data: Mapping[str, Any] = field(default_factory=dict)
    epoch: int | None = None
    step: int | None = None
    node: str | None = None
    task: str | None = None
    attempt: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain JSON, without what does not apply."""
        shown = {n: getattr(self, n) for n in ("kind", "epoch", "step", "node", "task", "attempt")}
        return {k: v for k, v in shown.items() if v is not None} | {"data": dict(self.data)}
