"""A worker host's clock is ten minutes off: nothing compares the clocks of two hosts."""

from __future__ import annotations

from datetime import datetime

import pytest

from celegraph import decide
from tests.support.scene import Scene
from tests.support.skewed import clock_off_by
from tests.support.waiting import eventually

FAST, SLOW = 600, -600


@pytest.mark.parametrize(("first", "then"), [(FAST, SLOW), (SLOW, FAST)], ids=["to slow", "to fast"])
def test_a_run_moves_between_hosts_whose_clocks_differ_by_twenty_minutes(
    scene: Scene, first: int, then: int
) -> None:
    one = scene.worker("one", env=scene.env() | clock_off_by(first))
    scene.gates.close("pay:acted")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("pay:acted", run_id)
    one.kill()
    scene.gates.open("pay:acted")

    scene.worker("two", env=scene.env() | clock_off_by(then))

    scene.await_status(run_id, "finished")
    assert scene.trail.steps(run_id) == ["one", "two", "pay", "pay", "last"]
    assert len(scene.provider.acts_of(run_id)) == 1


@pytest.mark.parametrize("off", [FAST, SLOW], ids=["fast", "slow"])
def test_deadlines_and_pauses_are_the_databases(scene: Scene, off: int) -> None:
    # Beat's ticks, which carry beat's time, are all expired for a fast worker: it sweeps by itself.
    scene.beat()
    scene.worker("w", env=scene.env() | clock_off_by(off))

    run_id = scene.begin("approved")
    question = scene.question(run_id)
    sleeper = scene.begin("flaky")

    assert question.deadline_at is not None
    assert 3500 < (question.deadline_at - question.created_at).total_seconds() < 3700
    decide(question.approval_id, "approve", by="anna")
    for each in (run_id, sleeper):
        scene.await_status(each, "finished", within=60)
    assert len(scene.provider.acts_of(run_id)) == 1


def test_the_outbox_and_the_doubts_are_seen_to_where_beats_ticks_arrive_expired(scene: Scene) -> None:
    scene.beat()
    worker = scene.worker("w", env=scene.env() | clock_off_by(FAST))

    def duties() -> set[str]:
        return {row["name"] for row in scene.conn.execute("SELECT name FROM ticks").fetchall()}

    eventually(lambda: duties() >= {"sweep", "escalate", "dispatch", "reconcile"}, within=40)
    assert "Discarding revoked task: celegraph" in worker.log


def test_an_owner_whose_clock_is_slow_is_not_taken_for_dead(scene: Scene) -> None:
    scene.configure(lease="3s", beat_every="1s")
    scene.worker("slow", env=scene.env() | clock_off_by(SLOW))
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("pay", run_id)
    scene.worker("sweeps", beat=True)
    given = expires_at(scene, run_id)

    # Two leases long: without its beats the sweep would have taken it.
    eventually(lambda: expires_at(scene, run_id) > given + 2 * scene.config.lease)
    scene.gates.open("pay")

    scene.await_status(run_id, "finished")
    assert scene.kinds(run_id).count("leased") == 1
    assert len(scene.provider.acts_of(run_id)) == 1


def expires_at(scene: Scene, run_id: str) -> datetime:
    """Until when the run's owner may keep silent."""
    row = scene.conn.execute("SELECT expires_at FROM run_leases WHERE run_id = %s", (run_id,)).fetchone()
    assert row is not None
    at: datetime = row["expires_at"]
    return at
