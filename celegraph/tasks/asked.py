"""Which answers a question takes and what follows from each: the same words on pages and in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from celegraph.agent.actions import Review, review_of
from celegraph.ledger.approvals import Approval
from celegraph.tasks.resolve import ANSWERS

_SILENCE = {
    "reject": "If nobody answers by then, the agent goes on without it.",
    "cancel": "If nobody answers by then, the run ends.",
    "approve": "If nobody answers by then, it is approved by policy.",
    "read_only": "If nobody answers by then, the agent goes on and may only read.",
}


@dataclass(frozen=True)
class Consequence:
    """What one answer, or none, leads to."""

    answer: str
    then: str


def verbs_of(asked: Approval) -> tuple[str, ...]:
    """The answers that this question takes."""
    if asked.kind == "doubt":
        return ANSWERS
    if asked.kind != "interrupt":
        return ("approve", "reject")
    if asked.args_hash is not None:
        return ("approve", "edit", "reject")
    review = review_of(asked.args)
    return ("approve", "reject", "answer") if review is None else _verbs_for(review)


def _verbs_for(review: Review) -> tuple[str, ...]:
    """What the author of the tools allows: for all calls at once, and for each of several."""
    for_all = [set(action.allowed) for action in review.actions]
    common = set.intersection(*for_all)
    if len(review.actions) > 1:
        return (*(verb for verb in ("approve", "reject") if verb in common), "each")
    words = {"approve": "approve", "edit": "edit", "reject": "reject", "respond": "answer"}
    return tuple(ours for theirs, ours in words.items() if theirs in common)


def consequences(asked: Approval) -> list[Consequence]:
    """What happens on each answer, and on none."""
    answers = _ONLY_READS if asked.run_read_only and asked.kind != "doubt" else _on_answers(asked)
    return [*answers, Consequence("Nobody answers", on_silence(asked))]


def _on_answers(asked: Approval) -> list[Consequence]:
    tool = asked.tool
    if asked.kind == "doubt" and asked.run_status == "failed":
        return [
            Consequence("It happened", "It is recorded. A retry of the run gets the reference as result."),
            Consequence("It did not happen", f"It is recorded. A retry of the run calls {tool} again."),
            Consequence("Skip it", "It is recorded. A retry of the run is told that it was skipped."),
        ]
    if asked.kind == "doubt" and asked.run_has_ended:
        return [Consequence("Any answer", "It is recorded. The run has ended, and nothing follows.")]
    if asked.kind == "doubt":
        return [
            Consequence(
                "It happened", f"{tool} is not called again; the agent gets the reference as result."
            ),
            Consequence("It did not happen", f"{tool} is called again, once, under the same key."),
            Consequence("Skip it", f"{tool} is not called; the agent is told that it was skipped."),
        ]
    if asked.kind == "drift":
        return [
            Consequence("Approve", f"{tool} is called with the new arguments as well."),
            Consequence("Reject", "The recorded call stands for both; nothing is called."),
        ]
    if asked.kind == "effect":
        return [
            Consequence("Approve", f"{tool} is called once, with exactly these arguments."),
            Consequence("Reject", f"{tool} is not called; the agent is told that it was not approved."),
        ]
    if asked.args_hash is not None:
        return [
            Consequence(
                "Approve", f"The run goes on. This pays for one call of {tool} with exactly these arguments."
            ),
            Consequence("Change and approve", "The same with the arguments as you have changed them."),
            Consequence("Reject", "The run goes on, and the agent is told no."),
        ]
    review = review_of(asked.args)
    if review is not None:
        return [_ON_REVIEW[verb] for verb in _verbs_for(review)]
    return [
        Consequence("Approve", "The run goes on with a yes."),
        Consequence("Reject", "The run goes on with a no."),
        Consequence("Answer", "The run goes on with your words."),
    ]


_ON_REVIEW: Final = {
    "approve": Consequence("Approve", "The tools are called as shown."),
    "edit": Consequence(
        "Change and approve", "The tool is called with the arguments as you have changed them."
    ),
    "reject": Consequence("Reject", "Nothing is called; the model is told no, with your note."),
    "answer": Consequence("Answer", "The tool is not called; the model gets your words as its result."),
    "each": Consequence("One by one", "Each call as you decide on it."),
}


# A run may have become so since it asked, by another question's silence.
_ONLY_READS: Final = [
    Consequence("Any answer", "The run goes on with it, but it may only read: no effect is called.")
]


def decided_before(asked: Approval) -> str | None:
    """How this was decided when it was asked the last time: "approved by ada"."""
    previous = asked.previous if isinstance(asked.previous, Mapping) else {}
    status, by = previous.get("status"), previous.get("by")
    return (f"{status} by {by}" if by else str(status)) if status else None


def on_silence(asked: Approval) -> str:
    """What no answer means."""
    if asked.deadline_at is None:
        return "It waits until somebody answers."
    if asked.silence is None:
        return "It stays open after that, and is brought up again until somebody answers."
    return _SILENCE[asked.silence]
