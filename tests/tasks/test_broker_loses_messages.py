"""The broker loses, delays or repeats messages; every run ends, and every effect happens once."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import redis

from celegraph.dev.server import free_port
from celegraph.dev.valkey import Valkey
from tests.support.process import Process
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.workers import supervised

# The smallest that leaves a node time to be slow; the scan for overdue messages runs every second.
IMPATIENT: dict[str, object] = {
    "broker_transport_options": {
        "visibility_timeout": 3,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    }
}


def _keeping(server: Valkey) -> None:
    server.restart()


def _forgetting(server: Valkey) -> None:
    server.kill()
    for path in (server.directory / "data").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    server.start()
    with redis.Redis.from_url(server.url) as client:
        assert client.dbsize() == 0


@pytest.mark.parametrize("restart", [_keeping, _forgetting], ids=["kept", "forgotten"])
def test_runs_queued_and_running_end_when_the_broker_was_restarted(
    database_url: str, tmp_path: Path, own_broker: Valkey, restart: Callable[[Valkey], None]
) -> None:
    with Scene(database_url, own_broker.url, tmp_path) as scene:
        worker = scene.worker("w", concurrency=2, beat=True)
        scene.gates.close("pay")
        run_ids = [scene.begin("retried") for _ in range(6)]
        eventually(lambda: len(scene.gates.arrivals("pay")) == 2)

        restart(own_broker)
        scene.gates.open("pay")

        supervised(worker, lambda: all(scene.run(run_id).status == "finished" for run_id in run_ids), 60)
        for run_id in run_ids:
            assert len(scene.provider.acts_of(run_id)) == 1
            assert scene.trail.steps(run_id).count("last") == 1


def test_a_message_that_died_with_the_worker_that_took_it_is_rung_again(scene: Scene) -> None:
    """The window between BRPOP and the entry in `unacked`: the message is in neither."""
    worker = scene.worker("w", concurrency=1)
    # It has asked Redis for a message and stands still before it can note that it got one.
    worker.freeze()
    run_id = scene.begin("retried")
    with redis.Redis.from_url(scene.broker_url) as client:
        taken = eventually(lambda: client.llen("celegraph") == 0 or _not_waiting(client))
        assert taken
        worker.kill()
        if client.llen("celegraph"):  # it stood between two of its questions: take it as it would have
            client.rpop("celegraph")
        assert (client.llen("celegraph"), client.hlen("unacked")) == (0, 0)

    scene.worker("second", beat=True)

    scene.await_status(run_id, "finished")
    assert len(scene.provider.acts_of(run_id)) == 1


def _not_waiting(client: redis.Redis) -> bool:
    """Nobody waits in a BRPOP."""
    return not any("brpop" in str(c["cmd"]) and "b" in str(c["flags"]) for c in client.client_list())


def test_a_message_delivered_again_after_its_run_is_over_does_nothing(scene: Scene) -> None:
    first = scene.worker("first", concurrency=1)
    scene.gates.close("pay")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("pay", run_id)
    first.kill()  # its message stays in `unacked`, and these two workers do not look for overdue ones
    scene.gates.open("pay")
    second = scene.worker("second", concurrency=1, beat=True)
    scene.await_status(run_id, "finished")
    second.send(signal.SIGTERM)
    second.wait()
    steps = scene.trail.steps(run_id)

    scene.celery.update(IMPATIENT)
    third = scene.worker("third", concurrency=1, beat=True)
    eventually(lambda: f"start_run[{run_id}] succeeded" in third.log, within=20)

    assert scene.trail.steps(run_id) == steps
    assert len(scene.provider.acts_of(run_id)) == 1
    with redis.Redis.from_url(scene.broker_url) as client:
        eventually(lambda: client.hlen("unacked") == 0 and client.llen("celegraph") == 0)


def test_without_beat_workers_see_to_everything_that_beat_asks_for(scene: Scene) -> None:
    scene.worker("w", concurrency=1)

    def duties() -> set[str]:
        return {row["name"] for row in scene.conn.execute("SELECT name FROM ticks").fetchall()}

    eventually(lambda: duties() == {"sweep", "escalate", "dispatch", "reconcile"}, within=30)
    # A retry's pause ends in the database; only a sweep can see that.
    scene.await_status(scene.begin("flaky"), "finished", within=60)


class Flower(Process):
    """A real Flower with its API."""

    def __init__(self, scene: Scene):
        self.port = free_port()
        env = scene.env() | {"FLOWER_UNAUTHENTICATED_API": "true"}
        words = ["-m", "celery", "-A", "tests.support.app:app", "flower", "--address=127.0.0.1"]
        super().__init__(
            "flower", [*words, f"--port={self.port}"], log=scene.directory / "flower.log", env=env
        )

    def is_ready(self) -> bool:
        """It answers."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/healthcheck").is_success
        except httpx.HTTPError:
            return False

    def revoke(self, task_id: str, *, terminate: bool) -> None:
        """What its button does."""
        answer = httpx.post(
            f"http://127.0.0.1:{self.port}/api/task/revoke/{task_id}",
            params={"terminate": str(terminate).lower()},
        )
        answer.raise_for_status()


@pytest.mark.parametrize("terminate", [False, True], ids=["revoke", "terminate"])
def test_a_run_revoked_in_flower_is_cancelled(scene: Scene, terminate: bool) -> None:
    scene.worker("w", concurrency=1, beat=True, options=["-E"])
    with Flower(scene) as flower:
        scene.gates.close("two")
        ahead = scene.begin("steps")
        scene.gates.await_arrival("two", ahead)
        queued = scene.begin("retried")

        flower.revoke(queued, terminate=terminate)
        scene.gates.open("two")

        assert scene.await_status(queued, "cancelled").reason == "its message was revoked"
        scene.await_status(ahead, "finished")
    assert scene.provider.acts_of(queued) == []
    assert scene.trail.steps(queued) == []
