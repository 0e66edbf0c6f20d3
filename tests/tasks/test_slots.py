"""What a worker slot keeps between attempts, and what it survives."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from celegraph.agent.attempt import Attempt
from celegraph.errors import AttemptOver
from tests.support.scene import Scene

_END_PENS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'celegraph pen%'"
)


def test_a_pen_that_died_while_idle_costs_no_doorbell(scene: Scene) -> None:
    scene.worker("w", concurrency=1)
    scene.await_status(scene.begin("steps"), "finished")

    assert scene.conn.execute(_END_PENS).fetchall()

    # Nothing sweeps here within that time: it is this very message that does it.
    scene.await_status(scene.begin("steps"), "finished", within=8)


def test_a_pen_that_dies_in_a_node_is_no_death_of_the_run(scene: Scene) -> None:
    scene.worker("w", concurrency=1)
    scene.gates.close("two")
    run_id = scene.begin("steps")
    scene.gates.await_arrival("two", run_id)

    assert scene.conn.execute(_END_PENS).fetchall()
    scene.gates.open("two")

    scene.await_status(run_id, "finished")
    assert "abandoned" in scene.kinds(run_id)
    assert "crashed" not in scene.kinds(run_id)


def test_a_node_thread_does_not_wait_for_a_loop_that_is_gone() -> None:
    loop = asyncio.new_event_loop()
    torn = cast(Attempt, SimpleNamespace(loop=loop, run_id="r-1"))
    step = asyncio.sleep(0)

    with pytest.raises(AttemptOver):
        Attempt.on_loop(torn, step)

    step.close()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
