"""A decision and the settle of the same run within the same millisecond: the decision is never lost.

The run has two questions.  The first is answered, an attempt takes that in and settles to wait for the
second; at that very moment somebody answers the second.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from celegraph import decide
from celegraph.ledger import approvals, leases, runs
from celegraph.ledger.leases import Settled
from celegraph.ledger.outcomes import Ask, Waiting
from celegraph.ledger.pen import Pen
from celegraph.ledger.runs import Admission
from celegraph.ledger.sweep import sweep_once
from tests.support.pens import with_pen
from tests.support.scene import Scene

_ROUNDS = 300
# Between the two sides, in seconds: from "the decision is first" to "the settle is first".
_SPREAD = timedelta(milliseconds=1.5).total_seconds()


def _asks(run_id: str) -> tuple[Ask, Ask]:
    first, second = (
        Ask(approval_id=f"{run_id}-{n}", kind="interrupt", interrupt_id=f"i{n}", prompt="?") for n in (1, 2)
    )
    return first, second


async def _ask_both(scene: Scene, pen: Pen, run_id: str) -> None:
    """A first attempt has come to both questions; the lock is still held."""
    runs.admit(scene.conn, Admission(run_id=run_id, agent="approved", input={}, max_crashes=3))
    assert await leases.try_lock(pen, run_id)
    begun = await leases.begin(pen, run_id, "test", scene.config)
    assert begun is not None
    await leases.settle(pen, run_id, begun.epoch, Waiting("asks", _asks(run_id)))


async def _take_in_first_answer(scene: Scene, pen: Pen, run_id: str) -> int:
    """The first question is answered; returns the epoch of the attempt that knows it."""
    assert decide(f"{run_id}-1", "approve", by="anna").won
    begun = await leases.begin(pen, run_id, "test", scene.config)
    assert begun is not None
    return begun.epoch


def _at(barrier: threading.Barrier, delay: float) -> None:
    barrier.wait()
    time.sleep(delay)


async def _race(scene: Scene, pen: Pen, pool: ThreadPoolExecutor, run_id: str, offset: float) -> Settled:
    await _ask_both(scene, pen, run_id)
    epoch = await _take_in_first_answer(scene, pen, run_id)
    barrier = threading.Barrier(2)

    def answer() -> None:
        _at(barrier, max(0.0, offset))
        assert decide(f"{run_id}-2", "approve", by="ben").won

    answered = pool.submit(answer)
    _at(barrier, max(0.0, -offset))
    settled = await leases.settle(pen, run_id, epoch, Waiting("waits for ben"), seen=[f"{run_id}-1"])
    await leases.release(pen)
    answered.result()
    return settled


def _forgotten(scene: Scene) -> list[str]:
    """Runs that wait although somebody has answered."""
    rows = scene.conn.execute(
        "SELECT DISTINCT run_id FROM runs JOIN approvals a USING (run_id)"
        " WHERE runs.status = 'waiting' AND a.status <> 'open' AND a.consumed_at IS NULL"
    ).fetchall()
    return [row["run_id"] for row in rows]


def test_no_decision_is_lost_to_a_settle_even_without_a_sweep(scene: Scene) -> None:
    async def race_all(pen: Pen) -> list[Settled]:
        with ThreadPoolExecutor(1) as pool:
            offsets = [_SPREAD * (2 * n / _ROUNDS - 1) for n in range(_ROUNDS)]
            return [await _race(scene, pen, pool, f"race-{n}", offset) for n, offset in enumerate(offsets)]

    settled = with_pen(scene.config, race_all)

    assert _forgotten(scene) == []
    assert {scene.run(f"race-{n}").status for n in range(_ROUNDS)} == {"ready"}
    # Both sides have woken runs: the race was one.
    assert {s.status for s in settled} == {"ready", "waiting"}
    woken = [scene.kinds(f"race-{n}").count("woken") for n in range(_ROUNDS)]
    assert set(woken) == {2}  # once for each answer, never twice for one


def test_the_sweep_wakes_every_run_whose_decider_died_before_it_could(scene: Scene) -> None:
    async def ask_all(pen: Pen) -> None:
        for n in range(_ROUNDS):
            await _ask_both(scene, pen, f"race-{n}")
            await leases.release(pen)

    with_pen(scene.config, ask_all)
    for n in range(_ROUNDS):
        assert approvals.decide(scene.conn, f"race-{n}-2", "approved", {"verb": "approve"}, by="ben")
    assert len(_forgotten(scene)) == _ROUNDS

    report = sweep_once(scene.conn, scene.config)

    assert len(report.woken) == _ROUNDS
    assert _forgotten(scene) == []
