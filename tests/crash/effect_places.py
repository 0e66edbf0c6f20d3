"""Every point around an effect where its process can die, once or, for what follows a doubt, twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.crash.places import GATES, STATEMENTS, Place
from tests.support.policies import POLICIES, Policy
from tests.support.wire import Statement, either, ours

_SIDES = ("before", "after")


@dataclass(frozen=True)
class Course:
    """The places at which one run of `agent` is killed, in order."""

    agent: str
    places: tuple[Place, ...]

    def __str__(self) -> str:
        return f"{self.agent:16} {', then '.join(place.name for place in self.places)}"


def _both(name: str, statement: Statement, gate: str | None = None, *, key: bool = False) -> list[Place]:
    return [
        Place(f"{side} {name}", gate, statement, side, names="key" if key else "run")  # type: ignore[arg-type]
        for side in _SIDES
    ]


def _known(*names: str) -> list[Place]:
    found = {place.name: place for place in (*GATES, *STATEMENTS)}
    return [found[name] for name in names]


_NOT_CALLED, _ACTED = _known("reserved, not called", "provider acted")
_WRITES = _known("before node's writes", "after node's writes", "before checkpoint", "after checkpoint")
_IN_A_NODE = [
    *_known("paying node", "before reserve", "after reserve", "reserved, not called", "provider acted"),
    *_known("before record", "after record", "recorded"),
    *_WRITES,
]
_BY_THE_OUTBOX = [
    *_known("paying node"),
    *_both("enqueue", ours("outbox", "enqueue"), "pay"),
    *_known("recorded"),
    *_WRITES,
    *_known("reserved, not called", "provider acted", "before record", "after record"),
]
_CLAIM = _both("second claim", ours("effects", "claim"))
_CLAIM_OF_INTENT = _both("second claim", ours("outbox", "claim_again"), key=True)
_LOOK_UP = Place("look-up", "pay:look-up")
# By the run's own next attempt, or by `reconcile_effects`, whoever looks first.
_FOUND = _both(
    "record of the look-up", either(ours("effects", "record_sent"), ours("doubts", "resolve")), key=True
)
_QUESTION = _both("question", ours("leases", "settle"))
_QUESTION_ABOUT_INTENT = _both("question", ours("doubts", "ask"))


def _in_doubt(policy: Policy, *, intent: bool) -> list[tuple[Place, Place]]:
    """The first death leaves a doubt, the second interrupts its answer."""
    claims = _CLAIM_OF_INTENT if intent else _CLAIM
    questions = _QUESTION_ABOUT_INTENT if intent else _QUESTION
    match policy:
        case "retry":
            return [(first, claim) for first in (_NOT_CALLED, _ACTED) for claim in claims]
        case "reconcile":
            looked_up = [(_NOT_CALLED, _LOOK_UP), (_ACTED, _LOOK_UP)]
            return [*looked_up, *((_NOT_CALLED, c) for c in claims), *((_ACTED, found) for found in _FOUND)]
    asked = [(first, question) for first in (_NOT_CALLED, _ACTED) for question in questions]
    # What did not happen after all is an intent's first claim anew, and names nobody.
    return asked if intent else [*asked, *((_NOT_CALLED, claim) for claim in claims)]


def courses() -> list[Course]:
    """All of them."""
    found = []
    for policy in POLICIES:
        for way in ("sync", "async"):
            found += _of(f"{policy}_{way}", [(p,) for p in _IN_A_NODE], _in_doubt(policy, intent=False))
        found += _of(f"{policy}_outbox", [(p,) for p in _BY_THE_OUTBOX], _in_doubt(policy, intent=True))
    return found


def _of(agent: str, *kinds: Sequence[tuple[Place, ...]]) -> list[Course]:
    return [Course(agent, places) for kind in kinds for places in kind]
