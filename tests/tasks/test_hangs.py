"""Owners that hang: each is found by what it has stopped doing, loses its run, and gives its slot back."""

from __future__ import annotations

import os
import signal

import psycopg
import pytest

from celegraph.ledger.connect import pen_name
from celegraph.ledger.keys import lock_key
from celegraph.ledger.sweep import sweep_once
from tests.support.process import is_dead, state_of
from tests.support.scene import Scene
from tests.support.waiting import eventually

# A lease of four seconds instead of a minute; after four more the process of a hung loop ends itself.
_IMPATIENT = {"lease": "4s", "beat_every": "500ms", "hang_after": "4s"}
# The same, but the lease alone tells.
_BY_LEASE = _IMPATIENT | {"hang_after": "8s"}


def _last_hang(scene: Scene, run_id: str) -> str:
    return str([e.data["reason"] for e in scene.events(run_id) if e.kind == "hung"][-1])


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("agent", "settings", "step", "sign"),
    [
        ("searching", _BY_LEASE, "search", "its process did not beat for a lease"),
        ("blocking", _IMPATIENT, "block", "its event loop was not seen for hang_after"),
    ],
    ids=["holding the interpreter", "blocked in C"],
)
def test_a_node_that_hangs_is_quarantined_and_other_runs_keep_flowing(
    scene: Scene, agent: str, settings: dict[str, str], step: str, sign: str
) -> None:
    scene.configure(max_crashes="2", **settings)
    runs = scene.worker("runs", queues=["celegraph"])
    scene.control()
    pool = runs.children()

    run_id = scene.begin(agent)

    run = scene.await_status(run_id, "quarantined", within=90)
    assert scene.trail.steps(run_id) == ["one", step, step]
    assert (run.crash_count, run.hang_count) == (0, 2)
    assert run.reason == (
        f"stopped its worker 2 times without progress after step 1 (next: {step}), the last time {sign}"
    )
    # Both slots hang; they come back by themselves, and say in which line they were.
    scene.await_status(scene.begin("steps"), "finished", within=90)
    eventually(lambda: all(is_dead(pid) for pid in pool), within=60)
    assert "hanging.py" in runs.log
    assert runs.running


def test_a_silent_agent_loses_its_run_long_before_the_lease_is_over(scene: Scene) -> None:
    scene.worker("w", beat=True, concurrency=1)

    run_id = scene.begin("standing")

    scene.await_status(run_id, "finished")
    assert scene.trail.steps(run_id) == ["one", "stand", "stand", "last"]
    assert _last_hang(scene, run_id) == "its agent's heartbeat was overdue"
    assert "fenced" in scene.kinds(run_id)
    assert scene.run(run_id).hang_count == 0  # a finished step forgives


def test_an_agent_that_reports_keeps_its_run_for_as_long_as_it_takes(scene: Scene) -> None:
    scene.worker("w", beat=True)
    scene.gates.close("beating")

    run_id = scene.begin("beating")

    # Three times as long as it may be silent.
    eventually(lambda: (scene.run(run_id).progress or {}).get("beats", 0) > 120, within=60)
    scene.gates.open("beating")
    scene.await_status(run_id, "finished")
    assert scene.kinds(run_id).count("leased") == 1


def test_an_agent_that_reports_and_is_stopped_is_missed(scene: Scene) -> None:
    scene.gates.close("beating")
    first = scene.worker("first", concurrency=1)
    run_id = scene.begin("beating")
    eventually(lambda: scene.run(run_id).progress)
    owner = scene.owner_pid(run_id)
    first.freeze()

    scene.worker("second", beat=True)

    eventually(lambda: "hung" in scene.kinds(run_id))
    (hung,) = [event for event in scene.events(run_id) if event.kind == "hung"]
    assert hung.data["progress"]["beats"] > 0
    scene.gates.open("beating")
    scene.await_status(run_id, "finished")
    first.thaw()
    # What the stopped node says next is refused: it stops by itself.
    eventually(lambda: "run abandoned" in first.log)
    assert state_of(owner) != "T"


def test_a_main_process_that_is_stopped_holds_up_no_run(scene: Scene) -> None:
    """The children go on and beat for themselves; only new messages wait."""
    scene.configure(lease="2s", beat_every="500ms")
    first = scene.worker("first")
    scene.gates.close("two")
    run_id = scene.begin("steps")
    scene.gates.await_arrival("two", run_id)
    os.kill(first.pid, signal.SIGSTOP)
    eventually(lambda: state_of(first.pid) == "T")

    scene.worker("second", beat=True)
    later = scene.begin("steps", run_id="later")
    scene.gates.await_arrival("two", later)
    scene.gates.open("two")

    scene.await_status(later, "finished")
    scene.await_status(run_id, "finished")
    assert scene.kinds(run_id).count("leased") == 1
    os.kill(first.pid, signal.SIGCONT)


def test_a_lock_that_no_live_lease_names_is_freed_and_no_other_session_is_touched(scene: Scene) -> None:
    """A forked grandchild may hold a dead owner's socket open, and with it the lock."""
    scene.configure(lease="1s", beat_every="300ms")
    scene.app.conf.task_always_eager = False
    run_id = scene.begin("steps")
    names = (pen_name("celegraph"), "somebody else's")
    holders = [psycopg.connect(scene.database_url, application_name=name, autocommit=True) for name in names]
    pen, stranger = holders
    pen.execute("SELECT pg_advisory_lock(%s)", [lock_key(run_id)])
    stranger.execute("SELECT pg_advisory_lock(%s)", [lock_key("another run")])

    def freed() -> bool:
        sweep_once(scene.conn, scene.config)
        return "fenced" in scene.kinds(run_id)

    eventually(freed)
    with pytest.raises(psycopg.OperationalError):
        pen.execute("SELECT 1")
    assert stranger.execute("SELECT 1").fetchone() == (1,)
    scene.worker("w", beat=True)
    scene.await_status(run_id, "finished")
    stranger.close()
