"""F59 and F60: many clicks, two minds; one decision stands and everybody is told which."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from celegraph import ApprovalPolicy, decide
from celegraph.tasks.decide import Decided
from tests.support.asking import open_questions
from tests.support.scene import Scene


def together(*clicks: Callable[[], Decided]) -> list[Decided]:
    """All in the same moment."""
    barrier = threading.Barrier(len(clicks))

    def click(one: Callable[[], Decided]) -> Decided:
        barrier.wait()
        return one()

    with ThreadPoolExecutor(len(clicks)) as pool:
        return list(pool.map(click, clicks))


def test_f59_thirty_parallel_approvals_pay_once_and_tell_everybody_the_same(scene: Scene) -> None:
    scene.control()
    for n in range(3):
        scene.worker(f"w{n}", queues=["celegraph"], concurrency=1)
    run_id = scene.begin("approved")
    asked = scene.question(run_id)

    answers = together(*(lambda n=n: decide(asked.approval_id, "approve", by=f"tab {n}") for n in range(30)))

    assert [a.won for a in answers].count(True) == 1
    assert len({(a.approval.decided_at, a.approval.decided_by) for a in answers}) == 1
    assert {a.status for a in answers} == {"approved"}
    scene.await_status(run_id, "finished")
    assert len(scene.provider.acts_of(run_id)) == 1
    assert scene.kinds(run_id).count("decided") == 1


def test_f60_approve_and_reject_at_the_same_moment_never_overwrite_each_other(scene: Scene) -> None:
    ids = open_questions(scene, ApprovalPolicy(), [f"both-{n}" for n in range(50)])
    winners = []

    for approval_id in ids:
        yes, no = together(
            lambda a=approval_id: decide(a, "approve", by="ann"),  # type: ignore[misc]
            lambda a=approval_id: decide(a, "reject", by="ben"),  # type: ignore[misc]
        )
        assert yes.won is not no.won
        winner = yes if yes.won else no
        # The loser is told what stands, and by whom.
        assert (yes.status, yes.approval.decided_by) == (no.status, no.approval.decided_by)
        assert winner.approval.decided_by == ("ann" if yes.won else "ben")
        winners.append(winner.status)

    stored = scene.conn.execute("SELECT status FROM approvals ORDER BY created_at").fetchall()
    assert [row["status"] for row in stored] == winners
