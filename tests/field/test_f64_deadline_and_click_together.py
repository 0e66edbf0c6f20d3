"""F64: a click in the very moment of the deadline.  One of the two wins, by the database's time alone."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from celegraph import ApprovalPolicy, decide
from celegraph.ledger import approvals
from celegraph.ledger.connect import connect
from celegraph.tasks.decide import Decided
from tests.support.asking import open_questions
from tests.support.scene import Scene

ROUNDS = 200
SPREAD = timedelta(milliseconds=50)
APART = timedelta(milliseconds=15)


def test_f64_an_approval_counts_exactly_when_it_is_recorded_as_one(scene: Scene) -> None:
    ids = open_questions(scene, ApprovalPolicy(deadline="1h"), [f"late-{n}" for n in range(ROUNDS)])
    # The first deadline is near when all are open, however long that took.
    first = datetime.now(UTC) + timedelta(seconds=1)
    deadlines = [first + n * APART for n in range(ROUNDS)]
    scene.conn.execute(
        "UPDATE approvals a SET deadline_at = d.at, next_action_at = d.at"
        " FROM unnest(%s::text[], %s::timestamptz[]) AS d (id, at) WHERE a.approval_id = d.id",
        (ids, deadlines),
    )
    over = threading.Event()

    def tick() -> None:
        with connect(scene.config) as conn:
            while not over.is_set():
                approvals.move_due(conn)

    def click(n: int) -> Decided:
        # From 50 ms before to 50 ms after, in no order.
        at = deadlines[n] + SPREAD * (((n * 37) % ROUNDS) / ROUNDS * 2 - 1)
        time.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds()))
        return decide(ids[n], "approve", by="ann")

    ticking = threading.Thread(target=tick)
    ticking.start()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(click, range(ROUNDS)))
    over.set()
    ticking.join()
    with connect(scene.config) as conn:
        while approvals.move_due(conn):
            pass
        rows = [approvals.get_approval(conn, approval_id) for approval_id in ids]

    for answer, row in zip(answers, rows, strict=True):
        assert row.status == ("approved" if answer.won else "expired")
        assert row.decided_by == ("ann" if answer.won else None)
        # The late one was told, and told the truth.
        assert answer.status == row.status
        assert row.decided_at is not None
        assert row.deadline_at is not None
        assert (row.decided_at < row.deadline_at) is answer.won
    assert {row.status for row in rows} == {"approved", "expired"}
