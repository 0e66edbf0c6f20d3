"""Open questions by the dozen, without a graph: admitted, begun and settled as an attempt does it."""

from __future__ import annotations

from collections.abc import Sequence

from celegraph import ApprovalPolicy
from celegraph.ledger import leases, runs
from celegraph.ledger.outcomes import Ask, Waiting
from celegraph.ledger.pen import Pen
from celegraph.ledger.runs import Admission
from tests.support.pens import with_pen
from tests.support.scene import Scene


def open_questions(
    scene: Scene,
    policy: ApprovalPolicy,
    names: Sequence[str],
    *,
    prompt: str = "go?",
) -> list[str]:
    """One waiting run with one open question for each name; returns the approvals' ids."""

    async def ask_all(pen: Pen) -> list[str]:
        asked = []
        for name in names:
            runs.admit(scene.conn, Admission(run_id=name, agent="approved", input={}, max_crashes=3))
            assert await leases.try_lock(pen, name)
            begun = await leases.begin(pen, name, "test", scene.config)
            assert begun is not None
            ask = Ask(
                approval_id=f"ap-{name}",
                kind="interrupt",
                interrupt_id=f"i-{name}",
                prompt=prompt,
                policy=policy.as_row(),
                deadline=policy.deadline,
            )
            await leases.settle(pen, name, begun.epoch, Waiting("asks", (ask,)))
            await leases.release(pen)
            asked.append(ask.approval_id)
        return asked

    return with_pen(scene.config, ask_all)
