"""Runs travel through RabbitMQ's quorum queues, and every effect happens once whatever dies."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from celegraph import decide
from celegraph.beat_schedule import SWEEP
from celegraph.tasks import queues
from celegraph.tasks.installation import installation
from tests.support.process import kill_and_await
from tests.support.rabbitmq import QUORUM, RabbitMQ, await_empty
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.workers import answered, supervised

OURS = ("celegraph", "celegraph.control")


def test_a_run_asks_and_ends_and_leaves_nothing_in_our_queues(scene: Scene, node: RabbitMQ) -> None:
    worker = scene.worker("w", beat=True)
    run_id = scene.begin("approved")

    decide(scene.question(run_id).approval_id, "approve", by="anna")

    scene.await_status(run_id, "finished")
    assert len(scene.provider.acts_of(run_id)) == 1
    assert all(node.is_quorum(name) for name in OURS)
    assert "Global QoS is disabled" in worker.log
    await_empty(node, "celegraph")


def test_a_host_without_quorum_queues_keeps_its_own_kind(
    database_url: str, empty_node: RabbitMQ, tmp_path: Path
) -> None:
    with Scene(database_url, empty_node.url, tmp_path) as scene:
        worker = scene.worker("w", beat=True)

        scene.await_status(scene.begin("steps"), "finished")

        assert not empty_node.is_quorum("celegraph")
        assert "Global QoS is disabled" not in worker.log


@pytest.mark.parametrize("whole", [False, True], ids=["child", "worker"])
def test_a_death_in_the_middle_of_a_call_pays_once(scene: Scene, whole: bool) -> None:
    first, second = scene.worker("first", beat=True), scene.worker("second", beat=True)
    scene.gates.close("pay:acted")
    run_id = scene.begin("retried")
    pid = scene.gates.await_arrival("pay:acted", run_id).pid

    if whole:
        next(w for w in (first, second) if pid in w.children()).kill()
    else:
        kill_and_await(pid)
    scene.gates.open("pay:acted")

    scene.await_status(run_id, "finished")
    assert len(scene.provider.acts_of(run_id)) == 1
    assert scene.kinds(run_id).count("crashed") == 1


def test_a_message_delivered_again_beside_its_run_does_nothing(scene: Scene, node: RabbitMQ) -> None:
    worker = scene.worker("w", concurrency=2, beat=True)
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("pay", run_id)

    node.drop_connections()
    # RabbitMQ delivers what nobody has acknowledged to the same worker again.
    eventually(lambda: worker.log.count(f"start_run[{run_id}] received") == 2, within=30)
    scene.gates.open("pay")

    scene.await_status(run_id, "finished")
    assert scene.trail.steps(run_id) == ["one", "two", "pay", "last"]
    assert len(scene.provider.acts_of(run_id)) == 1


def test_a_drained_run_is_moved_and_counts_no_death(scene: Scene, node: RabbitMQ) -> None:
    first = scene.worker("first", beat=True)
    scene.gates.close("two")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("two", run_id)

    first.send(signal.SIGTERM)
    eventually(lambda: "Warm shutdown" in first.log)
    scene.gates.open("two")
    assert first.wait() == 0
    scene.worker("second", beat=True)

    scene.await_status(run_id, "finished")
    assert scene.trail.steps(run_id) == ["one", "two", "pay", "last"]
    assert "crashed" not in scene.kinds(run_id)
    await_empty(node, "celegraph")


def test_runs_whose_messages_were_thrown_away_are_rung_again(scene: Scene, node: RabbitMQ) -> None:
    run_ids = [scene.begin("retried") for _ in range(10)]

    assert node.purge("celegraph") == 10
    scene.worker("w", beat=True)

    for run_id in run_ids:
        scene.await_status(run_id, "finished")
    assert len(scene.provider.acts()) == 10


def test_revoking_a_runs_message_cancels_the_run(scene: Scene) -> None:
    scene.worker("w")
    answered(lambda: scene.app.control.revoke("r-revoked", reply=True, timeout=5, limit=1))

    scene.begin("steps", run_id="r-revoked")

    assert scene.await_status("r-revoked", "cancelled").reason == "its message was revoked"


def test_stale_ticks_are_thrown_away_by_the_broker(scene: Scene, node: RabbitMQ) -> None:
    queues.declare(installation())
    for _ in range(200):
        scene.app.send_task(SWEEP, queue="celegraph.control", expires=1)

    eventually(lambda: node.queues("celegraph.control") == {"celegraph.control": 0})


def test_a_queue_of_another_type_is_refused_with_the_remedy(
    database_url: str, empty_node: RabbitMQ, tmp_path: Path
) -> None:
    with Scene(database_url, empty_node.url, tmp_path) as before:
        before.begin("steps", run_id="r-1")
    (later := tmp_path / "later").mkdir()
    with Scene(database_url, empty_node.url, later, celery=QUORUM) as after:
        worker = after.worker("w", start=False)
        worker.launch()
        assert worker.wait() == 1
        assert "rabbitmqctl delete_queue celegraph" in worker.log

        empty_node.delete("celegraph")
        worker.start()

        after.await_status("r-1", "finished")


def test_a_restarted_broker_finds_workers_and_runs_again(scene: Scene, node: RabbitMQ) -> None:
    worker = scene.worker("w", beat=True)
    scene.gates.close("pay")
    running = scene.begin("retried")
    scene.gates.await_arrival("pay", running)

    node.restart()
    queued = scene.begin("retried")
    scene.gates.open("pay")

    supervised(worker, lambda: {scene.run(run_id).status for run_id in (running, queued)} == {"finished"})
    for run_id in (running, queued):
        assert len(scene.provider.acts_of(run_id)) == 1
