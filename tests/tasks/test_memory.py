"""A node that runs out of memory loses its run and not the worker."""

from __future__ import annotations

from tests.support.scene import Scene


def test_a_node_that_eats_all_memory_fails_its_run_and_its_process_goes_on(scene: Scene) -> None:
    worker = scene.worker("w", concurrency=1)
    children = worker.children()

    run = scene.await_status(scene.begin("starving"), "failed")

    assert run.error["type"] == "builtins.MemoryError"
    assert (run.crash_count, run.retry_count) == (0, 0)
    scene.await_status(scene.begin("steps"), "finished")
    assert worker.children() == children
