"""F02: the provider has acted, and the worker died before it wrote that down."""

from __future__ import annotations

import os
import random
import signal
import time

from tests.support.scene import Scene

RUNS = 20


def test_twenty_workers_killed_shortly_after_the_act_pay_twenty_times(scene: Scene) -> None:
    scene.worker("w", concurrency=4, beat=True)
    chance = random.Random(2)
    run_ids = {scene.begin("retried", run_id=f"refund-{i}") for i in range(RUNS)}

    killed: set[str] = set()
    give_up = time.monotonic() + 60
    while killed != run_ids and time.monotonic() < give_up:
        for act in scene.provider.acts():
            run_id = act.body["run_id"]
            if run_id in killed:
                continue
            killed.add(run_id)
            pid = scene.trail.entries(run_id)[-1].pid
            # The subject: any moment between the act and what is written of it.
            time.sleep(chance.uniform(0, 0.03))
            if scene.run(run_id).status == "running":
                os.kill(pid, signal.SIGKILL)

    for run_id in run_ids:
        scene.await_status(run_id, "finished", within=60)
        (effect,) = scene.effects(run_id)
        (act,) = scene.provider.acts_of(run_id)
        assert (effect.status, effect.provider_ref) == ("sent", act.ref)
    assert len(scene.provider.acts()) == RUNS
    assert any("crashed" in scene.kinds(run_id) for run_id in run_ids)


def test_a_worker_killed_before_the_record_asks_again_with_the_same_key_and_body(scene: Scene) -> None:
    scene.worker("w", beat=True)
    scene.gates.close("pay:acted")
    run_id = scene.begin("retried")
    arrival = scene.gates.await_arrival("pay:acted", run_id)

    os.kill(arrival.pid, signal.SIGKILL)
    scene.gates.open("pay:acted")

    scene.await_status(run_id, "finished")
    (effect,) = scene.effects(run_id)
    (act,) = scene.provider.acts_of(run_id)
    assert (effect.status, effect.attempts, effect.provider_ref) == ("sent", 2, act.ref)
    assert (act.key, scene.provider.calls(act.key)) == (effect.idempotency_key, 2)
