"""Decisions: one UPDATE, the first wins; the run goes on even if every process is down just now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from celegraph.agent.actions import by_person, review_of
from celegraph.agent.shape import checked
from celegraph.config import Config
from celegraph.errors import DecisionRefused, InvalidValue
from celegraph.ledger import approvals, effects
from celegraph.ledger.approvals import Approval
from celegraph.ledger.canonical import check_size, decode_result, encode_result, stored_json
from celegraph.ledger.connect import AnyConn
from celegraph.ledger.keys import args_hash
from celegraph.ledger.values import check_note, check_person, check_stored_json
from celegraph.tasks import transactions
from celegraph.tasks.installation import installation
from celegraph.tasks.resolve import resolve_question
from celegraph.tasks.ring import wake_and_ring

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
    ref: str | None = None,
    connection: object = None,
) -> Decided:
    """Answer an open question: "approve", "reject", "edit" (with `args`) or "answer" (with `value`).

    The first decision stands; everybody else is told what it was.  `ref`: with "happened" as the answer to
    a doubt, the provider's own id.  With `connection` (or inside a Django transaction) it joins the caller's
    transaction.  Raises ApprovalNotFound, and before anything is written DecisionRefused (its `field` names
    what is wrong) or InvalidValue.
    """
    inst = installation()
    given = _Given(approval_id, verb, by, note, args, value, ref)
    _check(inst.config, given)
    with transactions.writing(inst.config, connection) as (conn, after_commit):
        decided = _decide(conn, inst.config, given)
        after_commit(lambda: wake_and_ring(inst, decided.approval.run_id))
    return decided


@dataclass(frozen=True)
class _Given:
    """What somebody answers to which question."""

    approval_id: str
    verb: str
    by: str
    note: str | None
    args: Mapping[str, Any] | None
    value: Any
    ref: str | None

    def refused(self, why: str, field: str | None = None) -> DecisionRefused:
        """The error that says so."""
        return DecisionRefused(self.approval_id, why, field=field)


def _check(config: Config, given: _Given) -> None:
    """Whatever can be refused without looking at the question."""
    if given.verb not in _VERBS:
        raise given.refused(f"unknown verb {given.verb!r}; use one of {', '.join(_VERBS)}")
    if not given.by or not isinstance(given.by, str):
        raise given.refused("by= must name who decides", "by")
    try:
        check_person(given.by)
        check_note(given.note, path="note")
    except InvalidValue as problem:
        raise given.refused(f"{problem.path}= {problem.problem}", problem.path) from problem
    if (given.args is not None) != (given.verb == "edit"):
        raise given.refused("args= goes with 'edit', and only with it", "args")
    if given.args is not None and not isinstance(given.args, Mapping):
        raise given.refused(f"args= is a dict, not {type(given.args).__name__}", "args")
    if given.value is not None and given.verb in ("reject", "edit"):
        raise given.refused("value= goes with 'answer' or 'approve'", "value")
    if given.value is not None:
        stored = stored_json(check_stored_json(given.value, path="value"))
        check_size(stored, config.max_value_bytes, "value")


def _decide(conn: AnyConn, config: Config, given: _Given) -> Decided:
    approval_id, verb, args, value = given.approval_id, given.verb, given.args, given.value
    asked = approvals.get_approval(conn, approval_id)
    if asked.kind == "doubt":
        won = resolve_question(conn, asked, verb, value, ref=given.ref, by=given.by, note=given.note)
        return _what_stands(conn, approval_id, won)
    if given.ref is not None:
        raise given.refused("ref= goes with the answer to a doubt, and only with it", "ref")
    status = "rejected" if verb == "reject" else "approved"
    decision: dict[str, Any] = {"verb": verb}
    new_args, new_hash = None, None
    review = review_of(asked.args) if asked.kind == "interrupt" and asked.args_hash is None else None
    if review is not None:
        # Any form that such a question can get an answer in is made the one its middleware takes.
        status, decision["value"] = by_person(
            approval_id, review, verb, args=args, value=value, note=given.note
        )
        check_size(stored_json(decision["value"]), config.max_value_bytes, "value")
    else:
        new_args, new_hash = _edited(asked, args, config.max_value_bytes)
        if value is not None or verb == "answer":
            decision["value"] = value
    won = approvals.decide(
        conn,
        approval_id,
        status,
        decision,
        by=given.by,
        note=given.note,
        args=new_args,
        args_hash=new_hash,
    )
    return _what_stands(conn, approval_id, won)


def _edited(asked: Approval, args: Mapping[str, Any] | None, limit: int) -> tuple[Any, str | None]:
    """The edited arguments, bound anew.  They must be the asked call's own, by name and by type."""
    if args is None:
        return None, None
    bound = decode_result(asked.args) if asked.args_hash is not None else None
    if not isinstance(bound, dict):
        raise DecisionRefused(asked.approval_id, "no call is bound to it, so there is nothing to edit")
    if unknown := sorted(set(map(str, args)) - set(bound)):
        known = ", ".join(sorted(bound))
        raise DecisionRefused(
            asked.approval_id, f"unknown argument {unknown[0]!r} (it has: {known})", field=unknown[0]
        )
    try:
        merged = bound | (checked(asked.args_schema, args) if asked.args_schema else dict(args))
        stored = encode_result(merged, path="args")
        check_size(stored_json(stored), limit, "args")
        return stored, args_hash(merged)
    except InvalidValue as problem:
        field = problem.path.removeprefix("args.")
        said = f"argument {field!r}: {problem.problem}"
        raise DecisionRefused(asked.approval_id, said, field=field) from problem


def _what_stands(conn: AnyConn, approval_id: str, won: bool) -> Decided:
    now = approvals.get_approval(conn, approval_id)
    key = now.effect_key or now.idempotency_key
    if key is None or (now.kind == "effect" and now.effect_key is None):
        return Decided(now, won)
    row = effects.get_effect(conn, key)
    return Decided(now, won, row.status, decode_result(row.result) if row.done else None)
