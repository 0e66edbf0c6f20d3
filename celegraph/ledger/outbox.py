"""The outbox: intents written by nodes, released with the node's own writes, performed by a dispatcher."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from psycopg.types.json import Jsonb

from celegraph.errors import EffectNotFound, EffectsDisabled, Fenced
from celegraph.ledger.connect import AnyConn
from celegraph.ledger.effect_row import Effect, Reservation
from celegraph.ledger.pen import Pen
from celegraph.ledger.plain import sought
from celegraph.ledger.queries import load
from celegraph.ledger.values import check_person

Q = load("outbox")


async def enqueue(pen: Pen, reservation: Reservation, *, task_id: str, execution: str) -> Effect | None:
    """(nothing) -> pending, attempts 0.  None: it was released before.  Raises `Fenced`."""
    params = reservation.params() | {"task_id": task_id, "execution": execution}
    row = await pen.fetch_one(Q.enqueue, params)
    if row is None or not row["mine"]:
        raise Fenced(reservation.run_id, reservation.epoch)
    if row["read_only"]:
        raise EffectsDisabled(reservation.run_id, reservation.tool)
    return None if row["idempotency_key"] is None else Effect.from_row(row)


async def drop_stale(pen: Pen, run_id: str, epoch: int, *, task_id: str, execution: str) -> None:
    """Forget the unreleased intents of passes other than `execution`; before the task's writes."""
    params = {"run_id": run_id, "epoch": epoch, "task_id": task_id, "execution": execution}
    await pen.fetch(Q.drop_stale, params)


async def claim_next(pen: Pen, owner: str, horizons: Mapping[str, timedelta]) -> Effect | None:
    """The next intent to perform, with the right to call it once; None: nothing is due."""
    row = await pen.fetch_one(Q.claim_next, {"owner": owner, **_by_tool(horizons)})
    return None if row is None else Effect.from_row(row)


async def claim_again(
    pen: Pen, row: Effect, owner: str, horizon: timedelta, *, settled: bool
) -> Effect | None:
    """pending past its horizon -> attempts + 1.  None: somebody else was first.  `settled` as in
    `effects.claim`."""
    params = {
        "key": row.idempotency_key,
        "attempts": row.attempts,
        "owner": owner,
        "horizon": horizon,
        "settled": settled,
    }
    found = await pen.fetch_one(Q.claim_again, params)
    return None if found is None else Effect.from_row(found)


async def doubtful(pen: Pen, horizons: Mapping[str, timedelta], limit: int) -> list[Effect]:
    """Intents whose last call nobody knows the end of; for a horizon nobody else gets them."""
    rows = await pen.fetch(Q.doubtful, {"limit": limit, **_by_tool(horizons)})
    return [Effect.from_row(row) for row in rows]


def _by_tool(horizons: Mapping[str, timedelta]) -> dict[str, Any]:
    return {
        "tools": list(horizons),
        "horizons": Jsonb({tool: h.total_seconds() for tool, h in horizons.items()}),
    }


async def try_later(pen: Pen, row: Effect, status: str, delay: timedelta | None) -> None:
    """Look at this intent again after `delay` if it still has this status; None makes it a dead letter."""
    params = {"key": row.idempotency_key, "attempts": row.attempts, "status": status, "delay": delay}
    await pen.fetch(Q.try_later, params)


def release_dead(conn: AnyConn, key: str, by: str) -> str:
    """A dead letter is tried again; returns its run_id.  `EffectNotFound` if there is no such letter."""
    row = conn.execute(Q.release_dead, {"key": sought(key), "by": check_person(by)}).fetchone()
    if row is None:
        raise EffectNotFound(key)
    return str(row["run_id"])
