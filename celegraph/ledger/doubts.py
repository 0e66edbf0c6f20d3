"""Doubts: calls whose end nobody saw, who has to be asked about them, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from psycopg.types.json import Jsonb

from celegraph.ledger.connect import AnyConn
from celegraph.ledger.effect_row import Effect
from celegraph.ledger.effects import kept_ref
from celegraph.ledger.outcomes import Ask, deadline_of
from celegraph.ledger.pen import Pen
from celegraph.ledger.plain import sought
from celegraph.ledger.queries import load
from celegraph.ledger.values import check_note, check_person

Q = load("doubts")


@dataclass(frozen=True)
class Resolution:
    """The answer to a doubt (or a provider's confirmation): the new status and what goes with it."""

    status: str  # sent | confirmed | failed
    by: str | None = None
    ref: str | None = None
    note: str | None = None
    result: Any = None
    error: Mapping[str, Any] | None = None
    certain: bool = False  # the provider itself says that it did nothing: no horizon to wait for
    decision: Mapping[str, Any] | None = None
    attempts: int | None = None  # the call that was asked about, when a question was answered

    def __post_init__(self) -> None:
        check_person(self.by)
        check_note(self.note, path="note")


async def resting(pen: Pen, tools: list[str], limit: int) -> list[Effect]:
    """Calls in doubt, past their horizon, of runs that rest; each goes to the end of the line."""
    rows = await pen.fetch(Q.resting, {"tools": tools, "limit": limit})
    return [Effect.from_row(row) for row in rows]


async def unasked(
    pen: Pen, *, unaided: list[str], looked_up: list[str], look_up_for: timedelta, limit: int
) -> list[Effect]:
    """Calls in doubt, past their horizon, that ended runs have left and people shall be asked about now.

    `unaided` and `looked_up`: the tools known here without and with a look-up; what may be looked up, here
    or by a worker that knows the tool, is left to look-ups for `look_up_for` past its horizon.
    """
    params = {"unaided": unaided, "looked_up": looked_up, "look_up_for": look_up_for, "limit": limit}
    return [Effect.from_row(row) for row in await pen.fetch(Q.unasked, params)]


async def happened(pen: Pen, row: Effect, *, result: Any, ref: str | None) -> bool:
    """pending -> sent by a look-up; the open question about it closes.  False: somebody was first."""
    resolution = Resolution(
        status="sent", by="look-up", ref=ref, result=result, decision={"verb": "answer", "value": "happened"}
    )
    return await _told(pen, row, resolution)


async def did_not_happen(pen: Pen, row: Effect) -> bool:
    """pending -> failed by a look-up, for a run that has ended: it may not call any more, so nothing can
    follow but the record.  The open question closes.  False: somebody was first."""
    resolution = Resolution(
        status="failed",
        by="look-up",
        error={"type": "celegraph.DidNotHappen", "by": "look-up"},
        decision={"verb": "answer", "value": "did_not_happen"},
        attempts=row.attempts,
    )
    return await _told(pen, row, resolution)


async def _told(pen: Pen, row: Effect, resolution: Resolution) -> bool:
    return await pen.fetch_one(Q.resolve, _resolve_params(row.idempotency_key, resolution)) is not None


async def ask(pen: Pen, run_id: str, question: Ask) -> None:
    """Open a question about a call in doubt outside of an attempt; once per call."""
    params: dict[str, Any] = {
        "approval_id": question.approval_id,
        "run_id": run_id,
        "ask": question.ask,
        "prompt": question.prompt,
        "tool": question.tool,
        "args": Jsonb(question.args),
        "args_hash": question.args_hash,
        "key": question.idempotency_key,
        "policy": Jsonb(question.policy),
        "asked": Jsonb(question.asked),
        **deadline_of(question),
    }
    await pen.fetch(Q.ask, params)


def resolve(conn: AnyConn, key: str, resolution: Resolution) -> str | None:
    """pending -> sent | confirmed | failed.  Returns the run_id, or None: no longer (or not yet) possible."""
    params = _resolve_params(key, resolution)
    row = conn.execute(Q.resolve, params).fetchone()
    return None if row is None else str(row["run_id"])


def _resolve_params(key: str, resolution: Resolution) -> dict[str, Any]:
    return {
        "key": sought(key),
        "status": resolution.status,
        "by": resolution.by,
        "ref": kept_ref(resolution.ref),
        "note": resolution.note,
        "result": Jsonb(resolution.result),
        "error": Jsonb(dict(resolution.error)) if resolution.error else None,
        "certain": resolution.certain,
        "attempts": resolution.attempts,
        "again": resolution.status == "failed" and not _is_final(resolution.error),
        "decision": Jsonb(dict(resolution.decision or {"verb": "answer"})),
    }


def _is_final(error: Mapping[str, Any] | None) -> bool:
    return bool(error and (error.get("skipped") or error.get("final")))
