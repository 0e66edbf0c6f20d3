"""The effect ledger: reserve before the call, record after it.  The attempt writes with its pen,
people and webhooks with a connection; the statements are the same files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.types.json import Jsonb

from celegraph.errors import EffectNotFound, EffectsDisabled, Fenced
from celegraph.ledger.connect import AnyConn, Conn
from celegraph.ledger.effect_row import Effect, NthCall, Reservation, Sent
from celegraph.ledger.pen import Pen
from celegraph.ledger.plain import sought
from celegraph.ledger.queries import load
from celegraph.ledger.values import clean_json

Q = load("effects")

# An entry of a btree index has at most 2,704 bytes; a character has up to four.
_LONGEST_REF = 600


async def of_run(pen: Pen, run_id: str) -> list[Effect]:
    """All effects of the run."""
    return [Effect.from_row(row) for row in await pen.fetch(Q.of_run, {"run_id": run_id})]


async def state(pen: Pen, key: str) -> Effect:
    """The row as it is now, with its horizon measured by the database."""
    row = await pen.fetch_one(Q.state, {"key": key})
    if row is None:
        raise EffectNotFound(key)
    return Effect.from_row(row)


async def reserve(pen: Pen, reservation: Reservation, *, approved: bool) -> Effect | None:
    """(nothing) -> pending with the right to call number 1.

    None: the row was there before, or (`approved`) no unused approval binds this call.  `Fenced`.
    """
    query = Q.reserve_approved if approved else Q.reserve
    row = _written(await pen.fetch_one(query, reservation.params()), reservation)
    return None if row is None else reservation.row(row)


async def claim(
    pen: Pen, reservation: Reservation, *, status: str, attempts: int, settled: bool = False
) -> Effect | None:
    """pending (past its horizon) | failed -> pending, attempts + 1.  None: read again, do not call.

    `settled`: a look-up has shown that the calls before did nothing; else their doubt stays on the row.
    """
    params = reservation.params() | {"status": status, "attempts": attempts, "settled": settled}
    row = _written(await pen.fetch_one(Q.claim, params), reservation)
    return None if row is None else Effect.from_row(row)


def _written(row: Mapping[str, Any] | None, reservation: Reservation) -> Mapping[str, Any] | None:
    if row is None or not row["mine"]:
        raise Fenced(reservation.run_id, reservation.epoch)
    if row.get("read_only"):
        raise EffectsDisabled(reservation.run_id, reservation.tool)
    return None if row["idempotency_key"] is None else row


async def record_read(pen: Pen, reservation: Reservation, result: Any) -> Effect | None:
    """(nothing) -> sent: a read's result, before anybody uses it.  None: it was there before."""
    params = reservation.params() | {"result": Jsonb(result)}
    row = _written(await pen.fetch_one(Q.record_read, params), reservation)
    return None if row is None else Effect.from_row(row)


async def record_sent(pen: Pen, call: NthCall, sent: Sent) -> Mapping[str, Any] | None:
    """pending | failed -> sent.  Not fenced: what the provider did is a fact, whoever owns the run now.

    Returns the columns that say what happened, as they stand now (a webhook may have confirmed it
    first); None: a later call has the row.
    """
    return await pen.fetch_one(Q.record_sent, _sent_params(call, sent))


def keep_sent(conn: AnyConn, call: NthCall, sent: Sent) -> None:
    """As `record_sent`, for a call that has outlived its pen."""
    conn.execute(Q.record_sent, _sent_params(call, sent))


def _sent_params(call: NthCall, sent: Sent) -> dict[str, Any]:
    return vars(call) | {"result": Jsonb(sent.result), "ref": kept_ref(sent.ref), "by": sent.by}


def kept_ref(ref: object) -> str | None:
    """The provider's id as the column and its index can hold it: a call that happened must be recorded,
    whatever its author took for an id (a number, an answer's whole body)."""
    return None if ref is None else str(clean_json(ref if isinstance(ref, str) else str(ref)))[:_LONGEST_REF]


async def record_failed(pen: Pen, call: NthCall, error: Mapping[str, Any]) -> None:
    """pending -> failed: certainly not done."""
    await pen.fetch(Q.record_failed, vars(call) | {"error": Jsonb(dict(error))})


async def record_doubt(pen: Pen, call: NthCall, error: Mapping[str, Any], *, over: bool) -> None:
    """pending stays pending: this call is over and nobody knows what it did.

    `over`: the provider knows the key, so the next call need not wait for the horizon.
    """
    await pen.fetch(Q.record_doubt, vars(call) | {"error": Jsonb(dict(error)), "over": over})


def get_effect(conn: AnyConn, key: str) -> Effect:
    """The effect, or `EffectNotFound`."""
    row = conn.execute(Q.state, {"key": sought(key)}).fetchone()
    if row is None:
        raise EffectNotFound(key)
    return Effect.from_row(row)


def effects_of(conn: Conn, run_id: str) -> list[Effect]:
    """All effects of the run, in the order they were reserved."""
    return [Effect.from_row(r) for r in conn.execute(Q.of_run, {"run_id": run_id}).fetchall()]


def key_of_ref(conn: AnyConn, ref: str) -> str:
    """The key of the one effect with this provider reference; `EffectNotFound` if none or several."""
    rows = conn.execute(Q.key_of_ref, {"ref": kept_ref(ref)}).fetchall()
    if len(rows) != 1:
        raise EffectNotFound(ref)
    return str(rows[0]["idempotency_key"])
