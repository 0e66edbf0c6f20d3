"""F04: the broker's connection drops in the middle of a node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from celegraph.dev.valkey import Valkey
from tests.support.host import APP, VARIANT
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.workers import Worker, supervised


def _drop_connections(server: Valkey) -> None:
    with redis.Redis.from_url(server.url) as client:
        # While it waits for messages: a connection that lies idle is replaced without a word.
        eventually(lambda: any("b" in str(other["flags"]) for other in client.client_list()))
        client.client_kill_filter(_type="normal", skipme=True)


def _restart(server: Valkey) -> None:
    server.restart()


def _ends(worker: Worker) -> bool:
    return "Unrecoverable error" in worker.log


@pytest.mark.parametrize("fault", [_drop_connections, _restart])
@pytest.mark.parametrize("variant", ["plain", "cancelling"])
def test_the_node_acts_once_whatever_the_setting(
    database_url: str, tmp_path: Path, own_broker: Valkey, fault: Callable[[Valkey], None], variant: str
) -> None:
    with Scene(database_url, own_broker.url, tmp_path) as scene:
        worker = scene.worker("w", app=APP, env=scene.env() | {VARIANT: variant}, beat=True)
        scene.gates.close("pay")
        run_id = scene.begin("retried")
        scene.gates.await_arrival("pay", run_id)

        fault(own_broker)
        eventually(lambda: "onnection to broker lost" in worker.log)
        if variant == "cancelling":
            # The node was torn away and another attempt stands where it stood; or the worker ends, and
            # waits for the node.
            supervised(worker, lambda: len(scene.gates.arrivals("pay", run_id)) == 2 or _ends(worker))
        scene.gates.open("pay")

        supervised(worker, lambda: scene.run(run_id).status == "finished")
        assert len(scene.provider.acts_of(run_id)) == 1
        # Worker and broker have found each other again.
        other = scene.begin("steps")
        supervised(worker, lambda: scene.run(other).status == "finished")
