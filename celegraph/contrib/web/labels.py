"""The words of the pages: what a status, a kind or a verb is called, and what follows from an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from celegraph.agent.actions import Review, review_of
from celegraph.ledger.approvals import Approval
from celegraph.ledger.states import STATUSES
from celegraph.tasks.consequences import on_silence

# A sign beside every colour: nobody has to tell red from green.
RUN_SIGNS: Final = {
    "ready": "○",
    "running": "▶",
    "waiting": "◷",
    "paused": "‖",
    "finished": "✓",
    "failed": "✕",
    "cancelled": "⊘",
    "quarantined": "!",
}
APPROVAL_SIGNS: Final = {
    "open": "◷",
    "approved": "✓",
    "rejected": "✕",
    "expired": "⌛",
    "cancelled": "⊘",
}
EFFECT_SIGNS: Final = {"pending": "◷", "sent": "✓", "confirmed": "✓", "failed": "✕"}

KINDS: Final = {
    "interrupt": "approval",
    "effect": "call without approval",
    "doubt": "did it happen?",
    "drift": "other arguments",
}
RUN_STATUSES: Final = STATUSES
ANSWERS: Final = {
    "happened": "It happened",
    "did_not_happen": "It did not happen",
    "skip": "Skip it",
}

REVIEW_VERBS: Final = {
    "approve": "call it as it is",
    "edit": "call it with changed arguments",
    "reject": "do not call it",
    "respond": "answer in its place",
}

RUN_VERBS: Final = {
    "cancel": "Cancel the run",
    "pause": "Pause",
    "resume": "Resume",
    "retry": "Retry",
    "release": "Release",
}
RUN_VERBS_MEAN: Final = {
    "cancel": "It ends at its next step and cannot be started again. Calls in doubt stay questions.",
    "pause": "It rests until somebody resumes it. Answers given meanwhile are kept.",
    "resume": "It goes on from where it stands.",
    "retry": "It goes on from its last finished step. What is recorded is not done again.",
    "release": "It goes on, with its crashes forgiven. Repair the cause first.",
}


@dataclass(frozen=True)
class Consequence:
    """What one answer, or none, leads to."""

    answer: str
    then: str


def question(kind: str, tool: str | None) -> str:
    """The question in a few words, as a heading."""
    if kind == "doubt":
        return f"Did {tool} happen?"
    if kind == "drift":
        return f"Call {tool} with other arguments?"
    return f"Approve {tool}?" if tool else "A question of the agent"


def verbs(asked: Approval) -> tuple[str, ...]:
    """The answers that this question takes."""
    if asked.kind == "doubt":
        return tuple(ANSWERS)
    if asked.kind != "interrupt":
        return ("approve", "reject")
    if asked.args_hash is not None:
        return ("approve", "edit", "reject")
    review = review_of(asked.args)
    return ("approve", "reject", "answer") if review is None else _verbs_of(review)


def _verbs_of(review: Review) -> tuple[str, ...]:
    """What the author of the tools allows: for all calls at once, and for each of several."""
    for_all = [set(action.allowed) for action in review.actions]
    common = set.intersection(*for_all)
    if len(review.actions) > 1:
        return (*(verb for verb in ("approve", "reject") if verb in common), "each")
    words = {"approve": "approve", "edit": "edit", "reject": "reject", "respond": "answer"}
    return tuple(ours for theirs, ours in words.items() if theirs in common)


def consequences(asked: Approval) -> list[Consequence]:
    """What happens on each answer, and on none."""
    return [*_on_answers(asked), Consequence("Nobody answers", on_silence(asked))]


def _on_answers(asked: Approval) -> list[Consequence]:
    tool = asked.tool
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
        return [_ON_REVIEW[verb] for verb in _verbs_of(review)]
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
