"""What the tests of dying processes rest on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import httpx
import pytest

from tests.support.process import ROOT, is_dead, kill_and_await, parent_of
from tests.support.scene import Scene
from tests.support.waiting import eventually


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_a_run_finishes_on_pools_without_children(scene: Scene, pool: str) -> None:
    scene.worker("w", pool=pool)

    run_id = scene.begin("retried")

    run = scene.await_status(run_id, "finished")
    (act,) = scene.provider.acts_of(run_id)
    assert run.output["receipt"] == act.ref
    assert scene.trail.steps(run_id) == ["one", "two", "pay", "last"]


def test_a_gate_says_who_has_arrived_and_holds_him_until_it_opens(scene: Scene) -> None:
    worker = scene.worker("w")
    scene.gates.close("two")

    run_id = scene.begin("steps")
    arrival = scene.gates.await_arrival("two", run_id)

    assert arrival.pid in worker.children()
    assert arrival.pid == scene.owner_pid(run_id)
    assert scene.trail.steps(run_id) == ["one", "two"]
    scene.gates.open("two")
    scene.await_status(run_id, "finished")


def test_a_killed_child_is_replaced_and_a_frozen_worker_stands_still_and_leaves_nothing(scene: Scene) -> None:
    worker = scene.worker("w")
    before = worker.children()

    kill_and_await(before[0])
    eventually(lambda: len(worker.children()) == 2)
    frozen = worker.freeze()

    assert before[0] not in frozen
    run_id = scene.begin("steps")
    assert scene.run(run_id).started_at is None
    worker.thaw()
    scene.await_status(run_id, "finished")
    worker.freeze()
    worker.kill()
    assert all(is_dead(pid) for pid in frozen)


def test_a_process_of_the_tests_dies_with_them() -> None:
    """Also when they are killed: here `-c` is a test run that starts a process and is killed."""
    script = (
        "import pathlib, sys; from tests.support.process import Process\n"
        "p = Process('p', ['-c', 'import time; time.sleep(60)'], log=pathlib.Path('/dev/null'), env={})\n"
        "p.start(); print(p.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert parent_of(pid) == parent.pid

        os.kill(parent.pid, signal.SIGKILL)

        eventually(lambda: is_dead(pid))


def _pay(scene: Scene, key: str, **body: object) -> httpx.Response:
    headers = {"Idempotency-Key": key}
    return httpx.post(f"{scene.provider.url}/pay", json=body, headers=headers, timeout=0.5)


def test_the_provider_acts_once_per_key_and_tells_by_key(scene: Scene) -> None:
    first, second = _pay(scene, "k", cents=1), _pay(scene, "k", cents=1)
    other_body = _pay(scene, "k", cents=2)

    assert first.json() == second.json() == httpx.get(f"{scene.provider.url}/acts/k").json()
    assert other_body.status_code == 422
    assert httpx.get(f"{scene.provider.url}/acts/other").status_code == 404
    assert len(scene.provider.acts()) == 1
    assert scene.provider.calls("k") == 3


def test_the_provider_fails_as_it_is_told(scene: Scene) -> None:
    scene.provider.switch(acts_then_hangs=1)
    with pytest.raises(httpx.ReadTimeout):
        _pay(scene, "hangs")
    scene.provider.switch(acts_then_resets=1)
    with pytest.raises(httpx.ReadError):
        _pay(scene, "resets")
    scene.provider.switch(caches_500=1)
    assert [_pay(scene, "500").status_code for _ in range(2)] == [500, 500]
    scene.provider.switch(refuses_connect=True)
    with pytest.raises(httpx.ConnectError):
        _pay(scene, "refused")
    scene.provider.switch(refuses_connect=False, ignores_key=True)
    assert [_pay(scene, "ignored").status_code for _ in range(2)] == [200, 200]

    assert [act.key for act in scene.provider.acts()] == ["hangs", "resets", "500", "ignored", "ignored"]
    assert scene.provider.doubled() == {"ignored": 2}
