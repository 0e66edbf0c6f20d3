"""The words of the pages: what a status, a kind or a verb is called.  What follows is in `tasks.asked`."""

from __future__ import annotations

from typing import Final

from celegraph.ledger.states import STATUSES

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
# On the page after the click.
DONE: Final = {
    **{verb: words.lower() for verb, words in RUN_VERBS.items()},
    "resolve": "your answer is recorded",
    "release-effect": "the effect is tried again",
}
RUN_VERBS_MEAN: Final = {
    "cancel": "It ends at its next step and cannot be started again. Calls in doubt stay questions.",
    "pause": "It rests, from its next step on, until somebody resumes it. Answers given meanwhile are kept.",
    "resume": "It goes on from where it stands.",
    "retry": "It goes on from its last finished step. What is recorded is not done again.",
    "release": "It goes on, with its crashes forgiven. Repair the cause first.",
}


def question(kind: str, tool: str | None) -> str:
    """The question in a few words, as a heading."""
    if kind == "doubt":
        return f"Did {tool} happen?"
    if kind == "drift":
        return f"Call {tool} with other arguments?"
    return f"Approve {tool}?" if tool else "A question of the agent"
