"""What a pass through the graph remarks about recorded calls: that they drifted, were given back, or stand
where they would be plainer elsewhere.  No call's outcome changes by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.types.json import Jsonb

from celegraph.ledger.effect_row import Effect
from celegraph.ledger.pen import Pen
from celegraph.ledger.queries import load

Q = load("remarks")


async def record_drift(pen: Pen, recorded: Effect, epoch: int, answer: str, now: Any) -> None:
    """A re-run reached a recorded call with other arguments, and this was the answer."""
    params = {
        "run_id": recorded.run_id,
        "epoch": epoch,
        "key": recorded.idempotency_key,
        "tool": recorded.tool,
        "answer": answer,
        "recorded": Jsonb(recorded.args),
        "now": Jsonb(now),
    }
    await pen.fetch(Q.drift, params)


async def record_replay(pen: Pen, effect: Effect, epoch: int, saved: Mapping[str, Any] | None = None) -> None:
    """A recorded result was given back instead of a second call; `saved`: what that spared."""
    params = {"epoch": epoch, "key": effect.idempotency_key, "saved": Jsonb(dict(saved or {}))}
    await pen.fetch(Q.replay, params)


async def record_advice(pen: Pen, run_id: str, epoch: int, noticed: list[dict[str, str]]) -> None:
    """Facts of kind "advice" ({node, about, text}); once per run, node and subject."""
    await pen.fetch(Q.advice, {"run_id": run_id, "epoch": epoch, "noticed": Jsonb(noticed)})
