"""Decisions: one UPDATE, the first wins; the run goes on even if every process is down just now."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from celegraph.errors import DecisionRefused
from celegraph.ledger import approvals, effects
from celegraph.ledger.approvals import Approval
from celegraph.ledger.borrow import borrowed
from celegraph.ledger.canonical import decode_result, encode_result
from celegraph.ledger.connect import AnyConn, ledger
from celegraph.ledger.keys import args_hash
from celegraph.ledger.sweep import wake
from celegraph.ledger.values import check_stored_json
from celegraph.tasks import transactions
from celegraph.tasks.installation import Installation, installation
from celegraph.tasks.resolve import resolve_question
from celegraph.tasks.ring import ring_ready

logger = logging.getLogger("celegraph")

_VERBS = ("approve", "reject", "edit", "answer")


@dataclass(frozen=True)
class Decided:
    """What stands now.  `won`: this call's decision is the recorded one; else somebody, or the
    deadline, was first.  `effect_status` and `effect_result`: what the approved effect has come to."""

    approval: Approval
    won: bool
    effect_status: str | None = None
    effect_result: Any = None

    @property
    def status(self) -> str:
        """approved, rejected, expired or cancelled."""
        return "expired" if self.approval.overdue else self.approval.status


def decide(
    approval_id: str,
    verb: str,
    *,
    by: str,
    note: str | None = None,
    args: Mapping[str, Any] | None = None,
    value: Any = None,
    connection: object = None,
) -> Decided:
    """Answer an open question: "approve", "reject", "edit" (with `args`) or "answer" (with `value`).

    The first decision stands; everybody else is told what it was.  With `connection` (or inside a
    Django transaction) it joins the caller's transaction.  Raises ApprovalNotFound, DecisionRefused.
    """
    inst = installation()
    _check(approval_id, verb, by, args, value)
    joined = None if connection is not None else transactions.open_transaction(inst.config)
    if connection is not None or joined is not None:
        target = connection if joined is None else joined.connection
        with borrowed(target, inst.config.schema_name) as conn:
            decided = _decide(conn, approval_id, verb, by, note, args, value)
        if joined is not None:
            joined.on_commit(lambda: wake_and_ring(inst, decided.approval.run_id))
        return decided
    with ledger(inst.config) as conn:
        decided = _decide(conn, approval_id, verb, by, note, args, value)
    wake_and_ring(inst, decided.approval.run_id)
    return decided


def _check(approval_id: str, verb: str, by: str, args: Mapping[str, Any] | None, value: Any) -> None:
    if verb not in _VERBS:
        raise DecisionRefused(approval_id, f"unknown verb {verb!r}; use one of {', '.join(_VERBS)}")
    if not by:
        raise DecisionRefused(approval_id, "by= must name who decides")
    if (args is not None) != (verb == "edit"):
        raise DecisionRefused(approval_id, "args= goes with 'edit', and only with it")
    if value is not None and verb == "reject":
        raise DecisionRefused(approval_id, "value= goes with 'answer' or 'approve'")
    if value is not None:
        check_stored_json(value, path="value")


def _decide(
    conn: AnyConn,
    approval_id: str,
    verb: str,
    by: str,
    note: str | None,
    args: Mapping[str, Any] | None,
    value: Any,
) -> Decided:
    asked = approvals.get_approval(conn, approval_id)
    if asked.kind == "doubt":
        won = resolve_question(conn, asked, verb, value, by=by, note=note)
        return _what_stands(conn, approval_id, won)
    new_args, new_hash = _edited(asked, args)
    decision: dict[str, Any] = {"verb": verb}
    if value is not None or verb == "answer":
        decision["value"] = value
    won = approvals.decide(
        conn,
        approval_id,
        "rejected" if verb == "reject" else "approved",
        decision,
        by=by,
        note=note,
        args=new_args,
        args_hash=new_hash,
    )
    return _what_stands(conn, approval_id, won)


def _edited(asked: Approval, args: Mapping[str, Any] | None) -> tuple[Any, str | None]:
    """The edited arguments, bound anew.  They must be the asked call's own, by name."""
    if args is None:
        return None, None
    bound = decode_result(asked.args) if asked.args_hash is not None else None
    if not isinstance(bound, dict):
        raise DecisionRefused(asked.approval_id, "no call is bound to it, so there is nothing to edit")
    if unknown := sorted(set(args) - set(bound)):
        known = ", ".join(sorted(bound))
        raise DecisionRefused(asked.approval_id, f"unknown argument {unknown[0]!r} (it has: {known})")
    merged = bound | dict(args)
    return encode_result(merged, path="args"), args_hash(merged)


def _what_stands(conn: AnyConn, approval_id: str, won: bool) -> Decided:
    now = approvals.get_approval(conn, approval_id)
    key = now.effect_key or now.idempotency_key
    if key is None or (now.kind == "effect" and now.effect_key is None):
        return Decided(now, won)
    row = effects.get_effect(conn, key)
    return Decided(now, won, row.status, decode_result(row.result) if row.done else None)


def wake_and_ring(inst: Installation, run_id: str) -> None:
    """After the decision is committed: make its run ready and ring.  Only faster; the sweep is sure."""
    try:
        with ledger(inst.config) as conn:
            if not wake(conn, run_id):
                return
        ring_ready(inst, [run_id])
    except Exception as error:
        # The decision is committed; failing the caller now would say that it is not.
        logger.warning("run not woken at once", extra={"run_id": run_id, "error": type(error).__name__})
