"""What follows from each answer to a question, in words: the same on a page, in a mail and in a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from celegraph.ledger.approvals import Approval

_SILENCE = {
    "reject": "If nobody answers by then, the agent goes on without it.",
    "cancel": "If nobody answers by then, the run ends.",
    "approve": "If nobody answers by then, it is approved by policy.",
    "read_only": "If nobody answers by then, the agent goes on and may only read.",
}


@dataclass(frozen=True)
class Consequences:
    """What happens next on each answer, and on none; `at` is when silence counts (None: never)."""

    approve: str
    reject: str
    silence: str
    at: datetime | None


def consequences(asked: Approval) -> Consequences:
    """What a person must know before the click."""
    tool = asked.tool
    match asked.kind:
        case "doubt":
            yes = "happened: it is recorded and never called again; did_not_happen: it is called again"
            no = "skip: it is not called, and the agent is told so"
        case "drift":
            yes, no = f"{tool!r} is called with the new arguments too", "the recorded call stands for it"
        case _ if asked.args_hash is not None:
            yes = f"{tool!r} may be called once, with exactly these arguments"
            no = f"{tool!r} is not called with them, and the agent goes on"
        case _:
            yes, no = "the agent goes on with a yes", "the agent goes on with a no"
    return Consequences(yes, no, on_silence(asked), asked.deadline_at if asked.silence else None)


def on_silence(asked: Approval) -> str:
    """What no answer means."""
    if asked.deadline_at is None:
        return "It waits until somebody answers."
    if asked.silence is None:
        return "It stays open after that, and is brought up again until somebody answers."
    return _SILENCE[asked.silence]
