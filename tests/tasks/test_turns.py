"""Duties that call the host's functions never have all of a worker's slots: a provider that hangs holds up
no run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from celegraph.beat_schedule import DISPATCH_EVERY
from tests.support.policies import AGENTS
from tests.support.scene import Scene
from tests.support.waiting import eventually


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_provider_that_hangs_in_the_outbox_leaves_the_last_slot_to_runs(
    database_url: str, broker_url: str, tmp_path: Path, pool: str
) -> None:
    with Scene(database_url, broker_url, tmp_path, agents=AGENTS) as scene:
        scene.control()
        scene.worker("runs", pool=pool, queues=[scene.config.queue], concurrency=2)
        scene.gates.close("pay:call")
        mails = [scene.begin("retry_outbox") for _ in range(3)]
        for run_id in mails:
            scene.await_status(run_id, "finished")
        scene.gates.await_arrival("pay:call")

        # As long as ticks come that would take the other slot for the next mail.
        until = time.monotonic() + 3 * DISPATCH_EVERY
        while time.monotonic() < until:
            scene.await_status(scene.begin("steps"), "finished")

        assert len(scene.gates.arrivals("pay:call")) == 1
        scene.gates.open("pay:call")
        eventually(lambda: all(scene.provider.acts_of(run_id) for run_id in mails), within=60)
        assert [len(scene.provider.acts_of(run_id)) for run_id in mails] == [1, 1, 1]
