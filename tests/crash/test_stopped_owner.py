"""A worker that was thought dead wakes up: it changes nothing any more."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.process import state_of
from tests.support.scene import Scene
from tests.support.waiting import eventually

# A lease of two seconds instead of a minute: the sweep calls the stopped owner hung after that.
_SHORT_LEASE = {"lease": "2s", "beat_every": "500ms", "call_window": "1s"}


@pytest.fixture
def scene(database_url: str, broker_url: str, tmp_path: Path) -> Iterator[Scene]:
    with Scene(database_url, broker_url, tmp_path, settings=_SHORT_LEASE) as made:
        yield made


def _head(scene: Scene, run_id: str) -> tuple[str, int]:
    """The newest checkpoint, and how many there are."""
    row = scene.conn.execute(
        "SELECT max(checkpoint_id) AS head, count(*) AS number FROM checkpoints WHERE thread_id = %s",
        [run_id],
    ).fetchone()
    assert row is not None
    return row["head"], row["number"]


def _writes(scene: Scene, run_id: str) -> int:
    row = scene.conn.execute(
        "SELECT count(*) AS number FROM checkpoint_writes WHERE thread_id = %s", [run_id]
    ).fetchone()
    assert row is not None
    return int(row["number"])


@pytest.mark.parametrize("gate", ["two", "pay:call"])
@pytest.mark.parametrize("whole", [True, False], ids=["worker", "child"])
def test_a_stopped_owner_wakes_up_and_changes_nothing(scene: Scene, whole: bool, gate: str) -> None:
    stale = scene.worker("stale", queues=["celegraph"], concurrency=1)
    scene.gates.close(gate)
    run_id = scene.begin("retried")
    owner = scene.gates.await_arrival(gate, run_id).pid
    if whole:
        stale.freeze()
    else:
        os.kill(owner, signal.SIGSTOP)
        eventually(lambda: state_of(owner) == "T")

    scene.worker("other", queues=["celegraph"])
    scene.control()
    second = scene.gates.await_arrival(gate, run_id, number=2)
    scene.gates.open(gate)
    finished = scene.await_status(run_id, "finished")
    head, writes, rows = _head(scene, run_id), _writes(scene, run_id), scene.effects(run_id)
    assert second.pid != owner
    assert "hung" in scene.kinds(run_id)

    stale.thaw() if whole else os.kill(owner, signal.SIGCONT)
    # The slot is free again when it takes another run: it has then done whatever it was going to do.
    others = [scene.begin("steps") for _ in range(6)]
    for other in others:
        scene.await_status(other, "finished")
    eventually(
        lambda: any(e.pid == owner and e.run_id != run_id for e in scene.trail.entries()) or _more(scene)
    )

    assert (_head(scene, run_id), _writes(scene, run_id), scene.effects(run_id)) == (head, writes, rows)
    assert len(scene.provider.acts_of(run_id)) == 1
    after = scene.run(run_id)
    assert (after.status, after.finished_at, after.epoch) == (
        "finished",
        finished.finished_at,
        finished.epoch,
    )
    assert after.output == finished.output


def _more(scene: Scene) -> bool:
    """Give the woken slot another run to take."""
    scene.await_status(scene.begin("steps"), "finished")
    return False
