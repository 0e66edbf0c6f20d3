"""What a person is told of the answers to a question."""

from __future__ import annotations

from celegraph import ask_approval, effect
from celegraph.agent.declaration import EffectCall
from celegraph.ledger.approvals import get_approval
from celegraph.tasks.asked import consequences
from celegraph.testing.driver import Driver
from tests.support.driving import connection
from tests.support.shapes import State, chain


@effect("refund-on-trial")
def refund(call: EffectCall, cents: int) -> str:
    """Never called here."""
    return "receipt"


def _ask(state: State) -> State:
    return {"seen": [ask_approval(refund.bind(5), prompt="Refund?").status]}


def test_who_decides_for_a_run_that_may_only_read_is_told_that_nothing_will_be_called(drive: Driver) -> None:
    said = {}
    for read_only in (False, True):
        run = drive(chain(_ask), {}, read_only=read_only)
        with connection(run) as conn:
            asked = get_approval(conn, run.approvals[0].approval_id)
        said[read_only] = [one.answer for one in consequences(asked)]

    assert said[False] == ["Approve", "Change and approve", "Reject", "Nobody answers"]
    assert said[True] == ["Any answer", "Nobody answers"]
