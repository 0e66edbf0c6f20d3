"""F106 on RabbitMQ: it is down, frozen or has hung up when a view enqueues."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from celegraph import decide, start_run
from celegraph.cli import check_workers
from celegraph.tasks.install import fit
from tests.support.outages import frozen, stopped
from tests.support.rabbitmq import RabbitMQ
from tests.support.scene import Scene

# Both halves of publish_timeout (2 s), and the database.
WITHIN = 3.0


@pytest.mark.parametrize("fault", [stopped, frozen])
def test_start_and_decide_answer_soon_and_the_run_goes_on_later(
    scene: Scene, node: RabbitMQ, fault: Callable[[RabbitMQ], Callable[[], None]]
) -> None:
    worker = scene.worker("w")
    asked = scene.question(scene.begin("approved", run_id="earlier"))
    worker.kill()
    repair = fault(node)
    try:
        for call in (
            lambda: start_run.delay("steps", {}, run_id="r-1"),
            lambda: decide(asked.approval_id, "approve", by="anna"),
        ):
            began = time.monotonic()
            call()
            assert time.monotonic() - began < WITHIN
        assert (scene.run("r-1").status, scene.run("r-1").rung_at) == ("ready", None)
    finally:
        repair()

    scene.worker("later", beat=True)
    scene.await_status("r-1", "finished")
    scene.await_status("earlier", "finished")
    assert len(scene.provider.acts_of("earlier")) == 1


def test_a_caller_whose_connection_was_closed_rings_over_a_new_one(scene: Scene, node: RabbitMQ) -> None:
    scene.begin("steps", run_id="r-1")
    node.drop_connections()

    scene.begin("steps", run_id="r-2")

    assert scene.run("r-2").rung_at is not None
    assert node.queues("celegraph") == {"celegraph": 2}


def test_doctor_knows_the_broker_and_says_when_it_does_not_answer(scene: Scene, node: RabbitMQ) -> None:
    inst = fit(scene.app, {})
    good = {check.name: check for check in check_workers.checks(inst)}
    assert (good["broker"].state, good["broker"].says.partition(" ")[0]) == ("ok", "RabbitMQ")

    repair = frozen(node)
    try:
        began = time.monotonic()
        silent = {check.name: check for check in check_workers.checks(inst)}
        assert time.monotonic() - began < 10
    finally:
        repair()

    assert silent["broker"].state == "error"
    assert "cannot be used" in silent["broker"].says
