"""A worker host's clock is ten minutes off: nothing compares the clocks of two hosts."""

from __future__ import annotations

from datetime import datetime

import pytest

from celegraph import decide
from tests.support.scene import Scene
from tests.support.skewed import APP, clock_off_by
from tests.support.waiting import eventually
from tests.support.workers import Worker

FAST, SLOW = 600, -600


def off(scene: Scene, name: str, seconds: int) -> Worker:
    """A worker on a host whose clock is wrong by so much."""
    return scene.worker(name, app=APP, env=scene.env() | clock_off_by(seconds))


@pytest.mark.parametrize(("first", "then"), [(FAST, SLOW), (SLOW, FAST)], ids=["to slow", "to fast"])
def test_a_run_moves_between_hosts_whose_clocks_differ_by_twenty_minutes(
    scene: Scene, first: int, then: int
) -> None:
    one = off(scene, "one", first)
    scene.gates.close("pay:acted")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("pay:acted", run_id)
    one.kill()
    scene.gates.open("pay:acted")

    off(scene, "two", then)

    scene.await_status(run_id, "finished")
    assert scene.trail.steps(run_id) == ["one", "two", "pay", "pay", "last"]
    # By LangGraph's own stamps the hosts are twenty minutes apart.
    stamps = scene.conn.execute(
        "SELECT (checkpoint ->> 'ts')::timestamptz AS at FROM checkpoints"
        " WHERE thread_id = %s ORDER BY checkpoint_id",
        (run_id,),
    ).fetchall()
    assert abs((stamps[-1]["at"] - stamps[0]["at"]).total_seconds()) > 1000
    assert len(scene.provider.acts_of(run_id)) == 1


@pytest.mark.parametrize("seconds", [FAST, SLOW], ids=["fast", "slow"])
def test_deadlines_and_pauses_are_the_databases(scene: Scene, seconds: int) -> None:
    # Beat's ticks, which carry beat's time, are all expired for a fast worker: it sweeps by itself.
    scene.beat()
    off(scene, "w", seconds)

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
    worker = off(scene, "w", FAST)

    def duties() -> set[str]:
        return {row["name"] for row in scene.conn.execute("SELECT name FROM ticks").fetchall()}

    eventually(lambda: duties() >= {"sweep", "escalate", "dispatch", "reconcile"}, within=40)
    assert "Discarding revoked task: celegraph" in worker.log


def test_an_owner_whose_clock_is_slow_is_not_taken_for_dead(scene: Scene) -> None:
    scene.configure(lease="6s", beat_every="1s")
    off(scene, "slow", SLOW)
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("pay", run_id)
    given = expires_at(scene, run_id)
    scene.worker("sweeps", beat=True)

    # A lease later: without its beats the sweep would have taken the run.
    eventually(lambda: expires_at(scene, run_id) > given + scene.config.lease, within=30)
    scene.gates.open("pay")

    scene.await_status(run_id, "finished")
    assert scene.kinds(run_id).count("leased") == 1
    assert len(scene.provider.acts_of(run_id)) == 1


def expires_at(scene: Scene, run_id: str) -> datetime:
    """Until when the run's owner may keep silent."""
    row = scene.conn.execute("SELECT expires_at FROM run_leases WHERE run_id = %s", (run_id,)).fetchone()
    assert row is not None
    assert row["expires_at"] is not None, scene.kinds(run_id)
    at: datetime = row["expires_at"]
    return at
