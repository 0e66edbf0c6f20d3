"""How a run's attempts look to Celery's events, and so to Flower: the truth, and nothing of the customer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celegraph import decide
from tests.support.odd import SECRET
from tests.support.scene import Scene
from tests.support.waiting import eventually

ENDS = {"task-succeeded", "task-retried", "task-failed"}


class Watcher:
    """Flower's view: everything that is told of tasks, by their id."""

    def __init__(self, scene: Scene):
        self._app = scene.app
        self.events: list[dict[str, Any]] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Receive for the length of the block."""
        stop = threading.Event()
        with self._app.connection_for_read() as connection:
            receiver = self._app.events.Receiver(connection, handlers={"*": self.events.append})
            bound = threading.Event()

            def receive() -> None:
                with receiver.consumer_context() as (own, *_):
                    bound.set()
                    while not stop.is_set():
                        try:
                            own.drain_events(timeout=0.2)
                        except TimeoutError:
                            continue

            thread = threading.Thread(target=receive, daemon=True)
            thread.start()
            assert bound.wait(10)
            yield
            stop.set()
            thread.join()

    def ends(self, run_id: str) -> list[str]:
        """How the messages of this run ended, in order."""
        ours = {e["uuid"] for e in self.events if e["type"] == "task-received" and run_id in e["kwargs"]}
        return [e["type"] for e in self.events if e.get("uuid") in ours and e["type"] in ENDS]


def test_an_attempt_that_waits_is_retried_and_the_one_that_finishes_succeeds(scene: Scene) -> None:
    watcher = Watcher(scene)
    with watcher.watching():
        scene.worker("w", options=["-E"])
        run_id = scene.begin("approved")
        question = scene.question(run_id)
        eventually(lambda: watcher.ends(run_id) == ["task-retried"])

        decide(question.approval_id, "approve", by="anna")

        eventually(lambda: watcher.ends(run_id) == ["task-retried", "task-succeeded"])


def test_an_attempt_that_sleeps_is_retried(scene: Scene) -> None:
    watcher = Watcher(scene)
    with watcher.watching():
        scene.worker("w", beat=True, options=["-E"])

        run_id = scene.begin("flaky")

        eventually(lambda: watcher.ends(run_id) == ["task-retried", "task-succeeded"])


def test_a_failed_run_is_a_failed_task_without_the_customers_data(scene: Scene) -> None:
    watcher = Watcher(scene)
    with watcher.watching():
        worker = scene.worker("w", options=["-E"])

        run_id = scene.begin("failing")

        eventually(lambda: watcher.ends(run_id) == ["task-failed"])
    assert SECRET in scene.run(run_id).error["message"]
    assert SECRET not in worker.log
    assert SECRET not in repr(watcher.events)
    (failed,) = [e for e in watcher.events if e["type"] == "task-failed"]
    assert f"run '{run_id}' is failed" in failed["exception"]


def test_the_clock_is_not_shown(scene: Scene) -> None:
    watcher = Watcher(scene)
    with watcher.watching():
        scene.worker("w", beat=True, options=["-E"])
        scene.await_status(scene.begin("flaky"), "finished")

    assert {e["name"] for e in watcher.events if e["type"] == "task-received"} <= {
        "celegraph.start_run",
        "celegraph.resume",
    }
