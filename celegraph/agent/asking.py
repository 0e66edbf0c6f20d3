"""Questions to people: `ask_approval` in a node, and the way of any interrupt to a row and back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from langgraph.types import Interrupt, interrupt

from celegraph.agent.attempt import Attempt, current_attempt
from celegraph.agent.bound import BoundEffect
from celegraph.agent.spec import ApprovalPolicy
from celegraph.ledger.approvals import Approval
from celegraph.ledger.canonical import decode_result, encode_result
from celegraph.ledger.keys import approval_id, args_hash
from celegraph.ledger.outcomes import Ask
from celegraph.ledger.values import clean_json

R = TypeVar("R")

# Marks an interrupt value as ours.  A version, because runs wait for weeks across releases.
_MARK = "celegraph_ask"
_LONGEST_PROMPT = 20_000


@dataclass(frozen=True)
class Decision:
    """A person's answer, or a deadline's.  `args` are the (perhaps edited) arguments that were bound."""

    approval_id: str
    status: str  # approved | rejected | expired
    by: str | None
    note: str | None
    value: Any
    args: dict[str, Any]

    @property
    def approved(self) -> bool:
        """A person said yes."""
        return self.status == "approved"

    @property
    def expired(self) -> bool:
        """Nobody answered in time; that is nobody's no."""
        return self.status == "expired"


def ask_approval(
    bound: BoundEffect[R] | None = None, *, prompt: str, policy: ApprovalPolicy | None = None
) -> Decision:
    """Ask a person and wait, for weeks if need be, without holding a process.

    With `bound` (from `effect.bind(...)`) the approval binds exactly this call.  Works in sync and async
    nodes.  Code before it in the node runs again when the answer comes, as with `interrupt()`.
    When a re-run reaches it with other arguments than were decided on, it asks again.
    """
    attempt = current_attempt("ask_approval")
    payload = {
        _MARK: 1,
        "prompt": prompt,
        "tool": bound.tool if bound else None,
        "args": encode_result(bound.args, path="args") if bound else None,
        "args_hash": args_hash(bound.args) if bound else None,
        "policy": (policy or attempt.policy).model_dump(mode="json"),
    }
    while True:
        answer = interrupt(payload)
        decision = _decision(answer)
        if bound is None or answer.get("asked_hash") in (None, payload["args_hash"]):
            return decision
        # Decided on other arguments than this pass computed: that decision is for another call.
        payload = payload | {"before": answer.get("asked_args")}


def _decision(answer: dict[str, Any]) -> Decision:
    args = decode_result(answer["args"]) if answer.get("args") is not None else {}
    return Decision(
        approval_id=answer["approval_id"],
        status=answer["status"],
        by=answer.get("by"),
        note=answer.get("note"),
        value=answer.get("value"),
        args=args if isinstance(args, dict) else {},
    )


def ask_for(attempt: Attempt, pending: Interrupt, number: int, note: str | None = None) -> Ask:
    """The row for a pending interrupt: ours carries its own policy, a plain one gets the agent's."""
    value = clean_json(pending.value)
    ours: dict[str, Any] = value if isinstance(value, dict) and value.get(_MARK) else {}
    prompt = str(ours.get("prompt") or _plain_prompt(value))
    policy = ApprovalPolicy.model_validate(ours.get("policy") or attempt.policy.model_dump(mode="json"))
    return Ask(
        approval_id=approval_id(attempt.run_id, pending.id, number),
        kind="interrupt",
        interrupt_id=pending.id,
        ask=number,
        prompt="\n\n".join([prompt, *_decided_before(ours), *([note] if note else [])])[:_LONGEST_PROMPT],
        tool=ours.get("tool"),
        args=ours.get("args") if ours else value,
        args_hash=ours.get("args_hash"),
        policy=policy.model_dump(mode="json"),
        deadline=policy.deadline,
    )


def _decided_before(ours: dict[str, Any]) -> list[str]:
    """What a person must know who is asked again: the arguments of the call that was decided on."""
    if ours.get("before") is None:
        return []
    before = json.dumps(clean_json(decode_result(ours["before"])), ensure_ascii=False)
    return [f"Asked again: the last decision was about other arguments, {before}"]


def _plain_prompt(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def resume_value(pending: Interrupt, approval: Approval) -> Any:
    """What the waiting `interrupt()` returns.

    ask_approval: the whole decision.  LangChain's HumanInTheLoopMiddleware: its list of decisions.  A
    plain interrupt: the value that was answered, else True for approved and False for everything else.
    """
    given = approval.decision or {}
    value = pending.value
    if isinstance(value, dict) and value.get(_MARK):
        return {
            "approval_id": approval.approval_id,
            "status": approval.status,
            "by": approval.decided_by,
            "note": approval.note,
            "value": given.get("value"),
            "args": approval.args,
            "asked_args": value.get("args"),
            "asked_hash": value.get("args_hash"),
        }
    if "value" in given:
        return given["value"]
    yes = approval.status == "approved"
    if isinstance(value, dict) and isinstance(value.get("action_requests"), list):
        one = {"type": "approve"} if yes else {"type": "reject", "message": approval.note or approval.status}
        return {"decisions": [one for _ in value["action_requests"]]}
    return yes
