"""A worker that was thought dead wakes up: it changes nothing any more."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator
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


def _facts(scene: Scene, run_id: str) -> tuple[object, ...]:
    """Everything a stale owner could have changed."""
    run = scene.run(run_id)
    ended = (run.status, run.finished_at, run.epoch, run.output)
    return (ended, _head(scene, run_id), _writes(scene, run_id), scene.effects(run_id))


@pytest.mark.parametrize("whole", [True, False], ids=["worker", "children"])
def test_a_stopped_owner_wakes_up_and_changes_nothing(scene: Scene, whole: bool) -> None:
    stale = scene.worker("stale", queues=["celegraph"], start=False)
    control = scene.control(start=False)
    stale.launch()
    control.launch()
    stale.await_ready()
    places = {f"stopped-at-{gate}": gate for gate in ("two", "pay:call")}
    for run_id, gate in places.items():
        scene.gates.close(gate, run_id)
        scene.begin("retried", run_id=run_id)
    owners = {scene.gates.await_arrival(gate, run_id).pid for run_id, gate in places.items()}
    pids = stale.freeze() if whole else _freeze(owners)

    scene.worker("other", queues=["celegraph"])
    control.await_ready()
    for run_id, gate in places.items():
        assert scene.gates.await_arrival(gate, run_id, number=2).pid not in owners
        scene.gates.open(gate, run_id)
    for run_id in places:
        scene.await_status(run_id, "finished")
        assert "hung" in scene.kinds(run_id)
    before = {run_id: _facts(scene, run_id) for run_id in places}

    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    # A woken slot that takes another run has done with the old one whatever it was going to do.
    eventually(lambda: owners <= _took_more(scene, places), within=60)

    assert {run_id: _facts(scene, run_id) for run_id in places} == before
    assert all(len(scene.provider.acts_of(run_id)) == 1 for run_id in places)


def _freeze(pids: Collection[int]) -> list[int]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    eventually(lambda: all(state_of(pid) == "T" for pid in pids))
    return list(pids)


def _took_more(scene: Scene, old: Collection[str]) -> set[int]:
    """Give every slot another run to take; returns the processes that have taken one."""
    for run_id in [scene.begin("steps") for _ in range(4)]:
        scene.await_status(run_id, "finished")
    return {entry.pid for entry in scene.trail.entries() if entry.run_id not in old}
