"""Chooses the next action from the situation.  A pure function: the state table of the design, in order."""

from __future__ import annotations

from dataclasses import dataclass

from celegraph.agent.situation import Situation
from celegraph.ledger.approvals import Approval


@dataclass(frozen=True)
class Start:
    """No checkpoint: give the graph its input."""


@dataclass(frozen=True)
class Resume:
    """Deliver these decisions, by interrupt id."""

    decisions: dict[str, Approval]


@dataclass(frozen=True)
class Continue:
    """Unfinished tasks: go on without input."""


@dataclass(frozen=True)
class Repair:
    """Tasks have failed: forget what they left behind, then look again.  They start over."""


@dataclass(frozen=True)
class Wait:
    """Only people can move it."""


@dataclass(frozen=True)
class WaitForCode:
    """Today's graph does not know what is pending."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Finish:
    """Nothing is left to do."""


Action = Start | Resume | Continue | Repair | Wait | WaitForCode | Finish


def choose(situation: Situation) -> Action:
    """The next action.  The order of the questions is the table; each line is one row of it."""
    if situation.head is None:
        return Start()
    if situation.unknown:
        return WaitForCode(situation.unknown)
    if situation.failed:
        # Before decisions: LangGraph keeps a failed task's last answer and, given it once more, hands
        # it to the task's next question.
        return Repair()
    decided = _decided(situation)
    if decided:
        return Resume(decided)
    if not situation.tasks:
        return Finish()
    if all(task.interrupts for task in situation.tasks if task.result is None) and situation.interrupts:
        return Wait()
    return Continue()


def _decided(situation: Situation) -> dict[str, Approval]:
    found: dict[str, Approval] = {}
    for interrupt in situation.interrupts:
        question = situation.questions.get(interrupt.id)
        if question is not None and question.status not in ("open", "cancelled"):
            found[interrupt.id] = question
    return found
