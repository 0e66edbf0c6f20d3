"""Tool calls of a model that wait for a person, as LangChain's HumanInTheLoopMiddleware asks about them.

Its two forms: one interrupt for all calls of a turn (`action_requests`), or one for each call
(`tool_approval`).  Known by shape: LangChain is not imported, and web processes read this too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from celegraph.errors import DecisionRefused

_EVERY = ("approve", "edit", "reject", "respond")


@dataclass(frozen=True)
class Action:
    """One tool call: what the model wants, and which answers its author allows."""

    name: str
    args: dict[str, Any]
    description: str
    allowed: tuple[str, ...]


@dataclass(frozen=True)
class Review:
    """What waits in one question.  `batched`: the answer is a list, in the order of the calls."""

    actions: tuple[Action, ...]
    batched: bool

    def answer(self, decisions: Sequence[Mapping[str, Any]]) -> Any:
        """What the waiting interrupt returns."""
        return {"decisions": list(decisions)} if self.batched else decisions[0]


def review_of(value: Any) -> Review | None:
    """The tool calls in an interrupt's value; None if it is another kind of question."""
    if not isinstance(value, Mapping):
        return None
    if value.get("type") == "tool_approval" and isinstance(value.get("name"), str):
        return Review((_action(value, _EVERY),), batched=False)
    requests = value.get("action_requests")
    if not isinstance(requests, list) or not requests or not all(isinstance(r, Mapping) for r in requests):
        return None
    configs = value.get("review_configs")
    allowed = {
        str(config.get("action_name")): _allowed(config.get("allowed_decisions"))
        for config in (configs if isinstance(configs, list) else ())
        if isinstance(config, Mapping)
    }
    return Review(tuple(_action(r, allowed.get(str(r.get("name")), _EVERY)) for r in requests), batched=True)


def _allowed(given: Any) -> tuple[str, ...]:
    """The answers an author allows; what is no list of words allows no fewer than no list at all."""
    words = [word for word in given if isinstance(word, str)] if isinstance(given, list) else []
    return tuple(words) or _EVERY


def _action(request: Mapping[str, Any], allowed: tuple[str, ...]) -> Action:
    args = request.get("args")
    return Action(
        name=str(request.get("name")),
        args=dict(args) if isinstance(args, Mapping) else {},
        description=str(request.get("description") or ""),
        allowed=allowed,
    )


def by_nobody(review: Review, *, approved: bool, why: str) -> Any:
    """The answer of a deadline, for all calls alike."""
    one = {"type": "approve"} if approved else {"type": "reject", "message": why}
    return review.answer([one] * len(review.actions))


def by_person(
    approval_id: str,
    review: Review,
    verb: str,
    *,
    args: Mapping[str, Any] | None,
    value: Any,
    note: str | None,
) -> tuple[Literal["approved", "rejected"], Any]:
    """What a person's decision means, checked against what the author allows: status and answer.

    "approve" and "reject" are for all calls, "edit" for a single one; "answer" takes one decision for
    each call in order, in LangChain's form or as a bare "approve" or "reject", or the text with which a
    person answers in a single tool's place.
    """
    several = len(review.actions) > 1
    match verb:
        case "approve" if value is None:
            given: list[Any] = [{"type": "approve"}] * len(review.actions)
        case "reject":
            one = {"type": "reject"} | ({"message": note} if note else {})
            given = [one] * len(review.actions)
        case "edit" if not several:
            given = [{"type": "edit", "args": args}]
        case "edit":
            raise DecisionRefused(
                approval_id,
                f"it asks about {len(review.actions)} calls; edit one of them with decide(id, 'answer',"
                " value=[{'type': 'edit', 'args': {...}}, {'type': 'approve'}, ...])",
            )
        case _:
            given = _listed(value)
    if len(given) != len(review.actions):
        raise DecisionRefused(
            approval_id, f"it asks about {len(review.actions)} calls, and {len(given)} decisions were given"
        )
    decisions = [_checked(approval_id, a, d) for a, d in zip(review.actions, given, strict=True)]
    rejected = all(d["type"] == "reject" for d in decisions)
    return "rejected" if rejected else "approved", review.answer(decisions)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, Mapping) and isinstance(value.get("decisions"), list):
        return list(value["decisions"])
    return list(value) if isinstance(value, list) else [value]


def _checked(approval_id: str, action: Action, given: Any) -> dict[str, Any]:
    """One decision in the form the middleware takes."""
    if isinstance(given, str):
        given = {"type": given} if given in ("approve", "reject") else {"type": "respond", "message": given}
    if not isinstance(given, Mapping) or given.get("type") not in _EVERY:
        raise DecisionRefused(
            approval_id, f"a decision about {action.name!r} is one of {', '.join(action.allowed)}"
        )
    kind = given["type"]
    if kind not in action.allowed:
        allowed = ", ".join(action.allowed)
        raise DecisionRefused(approval_id, f"{action.name!r} does not allow {kind!r} (it allows {allowed})")
    match kind:
        case "edit":
            return {"type": kind, "edited_action": _edited(approval_id, action, given)}
        case "respond":
            return {"type": kind, "message": _text(approval_id, action, given, required=True)}
        case "reject":
            message = _text(approval_id, action, given, required=False)
            return {"type": kind} | ({"message": message} if message else {})
    return {"type": kind}


def _edited(approval_id: str, action: Action, given: Mapping[str, Any]) -> dict[str, Any]:
    whole = given.get("edited_action")
    args = whole.get("args") if isinstance(whole, Mapping) else given.get("args")
    if isinstance(whole, Mapping) and whole.get("name") != action.name:
        # What was shown is what is decided on: another tool is another question.
        raise DecisionRefused(approval_id, f"an edit changes the arguments of {action.name!r}, not the tool")
    if not isinstance(args, Mapping):
        raise DecisionRefused(approval_id, f"an edit of {action.name!r} needs args={{...}}", field="args")
    # A whole action replaces the arguments; bare ones go over what the model gave, and a misspelt one
    # would be ignored by the tool: approved would be another call than the person meant.
    if whole is None and action.args and (unknown := sorted(set(args) - set(action.args))):
        known = ", ".join(sorted(action.args))
        raise DecisionRefused(
            approval_id, f"unknown argument {unknown[0]!r} (it has: {known})", field=unknown[0]
        )
    return {"name": action.name, "args": dict(args) if whole is not None else action.args | dict(args)}


def _text(approval_id: str, action: Action, given: Mapping[str, Any], *, required: bool) -> str:
    message = given.get("message")
    if message is None and not required:
        return ""
    if not isinstance(message, str):
        raise DecisionRefused(
            approval_id, f"{given['type']!r} for {action.name!r} needs a message", field="message"
        )
    return message
