"""F62 and F106: Redis is down, silent or frozen when a view enqueues or a decision is taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from celegraph import decide, start_run
from celegraph.dev.valkey import Valkey
from tests.support.app import make_app
from tests.support.outages import frozen, stopped
from tests.support.scene import Scene

# Both halves of publish_timeout (2 s), and the database.
WITHIN = 3.0


@pytest.mark.parametrize("fault", [stopped, frozen])
@pytest.mark.parametrize("connected", [True, False], ids=["connected", "new"])
def test_start_and_decide_answer_soon_and_the_run_goes_on_later(
    database_url: str,
    tmp_path: Path,
    own_broker: Valkey,
    fault: Callable[[Valkey], Callable[[], None]],
    connected: bool,
) -> None:
    with Scene(database_url, own_broker.url, tmp_path) as scene:
        if connected:
            worker = scene.worker("w")
            asked = scene.question(scene.begin("approved", run_id="earlier"))
            worker.kill()
        repair = fault(own_broker)

        began = time.monotonic()
        start_run.delay("steps", {}, run_id="r-1")
        assert time.monotonic() - began < WITHIN
        if connected:
            began = time.monotonic()
            assert decide(asked.approval_id, "approve", by="anna").won
            assert time.monotonic() - began < WITHIN

        assert (scene.run("r-1").status, scene.run("r-1").rung_at) == ("ready", None)
        repair()
        scene.worker("later", beat=True)
        scene.await_status("r-1", "finished")
        if connected:
            scene.await_status("earlier", "finished")
            assert len(scene.provider.acts_of("earlier")) == 1


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:1/0",
        "redis://nowhere.invalid:6379/0",
        "sentinel://127.0.0.1:1;sentinel://127.0.0.1:2",
        "amqp://127.0.0.1:1//",
    ],
)
def test_a_broker_that_refuses_costs_the_caller_no_time_and_no_run(scene: Scene, url: str) -> None:
    app = make_app(url, settings={"database_url": scene.database_url})
    app.conf.broker_transport_options = {"master_name": "m"} if url.startswith("sentinel") else {}

    began = time.monotonic()
    result = app.tasks["celegraph.start_run"].delay("steps", {})

    assert time.monotonic() - began < WITHIN
    assert scene.run(str(result.id)).status == "ready"


def test_a_hosts_own_transport_options_hold_for_our_messages(scene: Scene) -> None:
    scene.app.conf.broker_transport_options = {"global_keyprefix": "shop:"}

    scene.begin("steps", run_id="r-1")

    with redis.Redis.from_url(scene.broker_url) as client:
        assert client.llen("shop:celegraph") == 1
