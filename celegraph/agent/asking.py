"""Questions to people: `ask_approval` in a node, and the way of any interrupt to a row and back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from langgraph.types import Interrupt, interrupt

from celegraph.agent.actions import Review, by_nobody, review_of
from celegraph.agent.attempt import Attempt, current_attempt
from celegraph.agent.bound import BoundEffect
from celegraph.agent.place import here
from celegraph.agent.policy import ApprovalPolicy, check_channels
from celegraph.errors import InvalidValue
from celegraph.ledger.approvals import Approval
from celegraph.ledger.canonical import check_size, decode_result, encode_result, stored_json
from celegraph.ledger.keys import approval_id, args_hash
from celegraph.ledger.outcomes import Ask
from celegraph.ledger.values import MAX_PROMPT, clean_json

R = TypeVar("R")

# Marks an interrupt value as ours.  A version, because runs wait for weeks across releases.
_MARK = "celegraph_ask"
# What a model is told; "rejected" would be a person's word.
_SILENCE = {"expired": "nobody answered in time"}


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
        """A person said yes, or silence did: then `by` is None."""
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
    place = here(attempt.saver.sites.site)
    if len(prompt) > MAX_PROMPT:
        raise InvalidValue("prompt", f"has {len(prompt)} characters, a person reads at most {MAX_PROMPT}")
    own = check_channels(policy or attempt.policy, attempt.config)
    payload = {
        _MARK: 1,
        "prompt": prompt,
        "tool": bound.tool if bound else None,
        "args": _shown(bound, attempt.config.max_value_bytes) if bound else None,
        "args_hash": args_hash(bound.args) if bound else None,
        "args_schema": bound.schema if bound else None,
        "asked": {"node": place.node, "step": place.step} if place is not None else None,
        "policy": own.model_dump(mode="json"),
    }
    while True:
        answer = interrupt(payload)
        decision = _decision(answer)
        if bound is None or answer.get("asked_hash") in (None, payload["args_hash"]):
            return decision
        # Decided on other arguments than this pass computed: that decision is for another call.
        payload = payload | {"before": answer.get("asked_args"), "previous": _previous(answer)}


def _shown(bound: BoundEffect[Any], limit: int) -> Any:
    """The arguments as a page shows them; what is too large to be an effect's is refused here already."""
    shown = encode_result(bound.args, path="args")
    check_size(stored_json(shown), limit, "args")
    return shown


def _previous(answer: dict[str, Any]) -> dict[str, Any]:
    """What was decided on instead, and how."""
    return {
        "args": answer.get("asked_args"),
        "approval_id": answer.get("approval_id"),
        "status": answer.get("status"),
        "by": answer.get("by"),
    }


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


def ask_for(
    attempt: Attempt, pending: Interrupt, number: int, *, node: str | None, refused: str | None = None
) -> Ask:
    """The row for a pending interrupt: ours carries its own policy, a plain one gets the agent's.

    `refused`: the graph has refused the last answer, and so it said why.  ValueTooLarge when nobody could
    be shown what the question is about.
    """
    value = clean_json(pending.value)
    ours: dict[str, Any] = value if isinstance(value, dict) and value.get(_MARK) else {}
    review = review_of(value)
    prompt = str(ours.get("prompt") or _plain_prompt(value, review))
    shown = ours.get("args") if ours else value
    check_size(stored_json(shown), attempt.config.max_value_bytes, "the value of interrupt()")
    policy = ApprovalPolicy.model_validate(ours.get("policy") or attempt.policy.model_dump(mode="json"))
    single = review.actions[0].name if review is not None and len(review.actions) == 1 else None
    previous = ours.get("previous")
    return Ask(
        approval_id=approval_id(attempt.run_id, pending.id, number),
        kind="interrupt",
        interrupt_id=pending.id,
        ask=number,
        prompt=_cut("\n\n".join([prompt, *_decided_before(ours), *([refused] if refused else [])])),
        tool=ours.get("tool") or single,
        args=shown,
        args_hash=ours.get("args_hash"),
        policy=policy.as_row(attempt.policy),
        deadline=policy.deadline,
        asked={"agent": attempt.run.agent, "node": node} | (ours.get("asked") or {}),
        previous=previous if refused is None else (previous or {}) | {"refused": refused},
        args_schema=ours.get("args_schema"),
    )


def _cut(prompt: str) -> str:
    """A prompt that a person can read; what is bound is in the arguments, which are never cut."""
    if len(prompt) <= MAX_PROMPT:
        return prompt
    return f"{prompt[: MAX_PROMPT - 100]}\n\n[cut here: {len(prompt)} characters in all]"


def _decided_before(ours: dict[str, Any]) -> list[str]:
    """What a person must know who is asked again: the arguments of the call that was decided on."""
    if ours.get("before") is None:
        return []
    before = json.dumps(clean_json(decode_result(ours["before"])), ensure_ascii=False)
    return [f"Asked again: the last decision was about other arguments, {before}"]


def _plain_prompt(value: Any, review: Review | None) -> str:
    if review is not None:
        return "\n\n".join(action.description or f"Allow {action.name!r}?" for action in review.actions)
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
    review = review_of(value)
    if review is not None:
        return by_nobody(
            review, approved=yes, why=approval.note or _SILENCE.get(approval.status, approval.status)
        )
    return yes
