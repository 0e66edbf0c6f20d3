"""Questions the ledger itself asks: about a doubt, a call without its approval, a call that drifted."""

from __future__ import annotations

from typing import Any, Literal

from celegraph.agent.attempt import Attempt
from celegraph.agent.policy import ApprovalPolicy
from celegraph.ledger.approvals import Approval
from celegraph.ledger.effect_row import Effect, Reservation
from celegraph.ledger.keys import approval_id
from celegraph.ledger.outcomes import Ask, Waiting


def doubt_question(row: Effect, policy: ApprovalPolicy, agent: str | None = None) -> Ask:
    """Did this call happen?  In the same inbox as approvals, once per call.

    The agent's policy says who is told and asked again; silence answers nothing here.
    """
    return Ask(
        approval_id=approval_id(row.run_id, f"doubt:{row.idempotency_key}", row.attempts),
        kind="doubt",
        prompt=(
            f"Did {row.tool!r} happen? The process stopped between the call (number {row.attempts}) and its"
            f" record. Look for key {row.idempotency_key} at the provider, then answer happened,"
            " did_not_happen or skip."
        ),
        ask=row.attempts,
        tool=row.tool,
        args=row.args,
        args_hash=row.args_hash,
        idempotency_key=row.idempotency_key,
        policy=policy.as_row(),
        deadline=policy.deadline,
        asked={"agent": agent, "step": row.step},
    )


def ask_about_doubt(attempt: Attempt, row: Effect) -> Waiting:
    """End the attempt with the question about a doubt."""
    return Waiting("effect in doubt", (doubt_question(row, attempt.policy, attempt.run.agent),))


def ask_for_call(attempt: Attempt, reservation: Reservation, schema: dict[str, Any] | None) -> Waiting:
    """The question for a call that requires an approval and was reached without one."""
    number = 1 + sum(a.idempotency_key == reservation.key for a in attempt.approvals)
    ask = Ask(
        approval_id=approval_id(attempt.run_id, f"effect:{reservation.key}", number),
        kind="effect",
        prompt=f"Allow {reservation.tool!r}?",
        ask=number,
        tool=reservation.tool,
        args=reservation.args,
        args_hash=reservation.args_hash,
        idempotency_key=reservation.key,
        policy=attempt.policy.as_row(),
        deadline=attempt.policy.deadline,
        asked={"agent": attempt.run.agent, "step": reservation.step},
        args_schema=schema,
    )
    return Waiting("waits for an approval", (ask,))


def ask_about_drift(attempt: Attempt, recorded: Effect, args: Any, hashed: str) -> Waiting:
    """The question whether a call with other arguments shall be made beside the recorded one.

    Approve: make it.  Reject: the recorded call stands for it.
    """
    number = 1 + len(_drifts(attempt, recorded, hashed))
    ask = Ask(
        approval_id=approval_id(attempt.run_id, f"drift:{recorded.idempotency_key}:{hashed}", number),
        kind="drift",
        ask=number,
        prompt=(
            f"{recorded.tool!r} was called at this place of the run before, with other arguments. Approve to"
            " make the new call as well; reject to keep the recorded one."
        ),
        tool=recorded.tool,
        args={"recorded": recorded.args, "now": args},
        args_hash=None,
        idempotency_key=recorded.idempotency_key,
        policy=attempt.policy.as_row() | {"drift_hash": hashed},
        deadline=attempt.policy.deadline,
        asked={"agent": attempt.run.agent, "step": recorded.step},
        previous={"args": recorded.args},
    )
    return Waiting("effect drifted: a re-run wants other arguments", (ask,))


def answered_drift(attempt: Attempt, recorded: Effect, hashed: str) -> Literal["perform", "keep"] | None:
    """What was decided about this very drift; None: nobody has been asked, or nobody has answered."""
    for a in _drifts(attempt, recorded, hashed):
        # Cancelled: the run failed before anybody had answered.  That is nobody's answer.
        if a.status not in ("open", "cancelled"):
            return "perform" if a.status == "approved" else "keep"
    return None


def _drifts(attempt: Attempt, recorded: Effect, hashed: str) -> list[Approval]:
    """Every time this very drift was asked about."""
    mine = [
        a for a in attempt.approvals if a.kind == "drift" and a.idempotency_key == recorded.idempotency_key
    ]
    return [a for a in mine if a.policy.get("drift_hash") == hashed]
