"""F131: workers of two releases side by side on one queue; neither loses what the other sends.

Seen elsewhere: the handling of arguments changed in a minor version, and older consumers broke.
"""

from __future__ import annotations

import base64
import json
from collections import Counter

import redis

from tests.support import newer
from tests.support.scene import Scene
from tests.support.waiting import eventually

RUNS = 50


def test_fifty_runs_served_by_two_releases_pay_fifty_times(scene: Scene) -> None:
    env = scene.env()
    old = scene.worker("old", pool="prefork", options=["--max-tasks-per-child=4"])
    run_ids = [scene.begin("retried") for _ in range(RUNS // 2)]

    # The deploy: first its migration, while the old workers work and replace their children.
    newer.migrate(scene.database_url)
    new = scene.worker("new", app=newer.APP, env=env, beat=True)
    run_ids += [scene.begin("retried") for _ in range(RUNS // 2)]

    for run_id in run_ids:
        scene.await_status(run_id, "finished", within=90)
    assert Counter(act.body["run_id"] for act in scene.provider.acts()) == Counter(run_ids)
    assert old.running
    assert new.running
    hosts = {entry.pid for entry in scene.trail.entries()}
    assert len(hosts) > 4  # children came and went on both sides


def test_an_old_worker_serves_what_a_new_one_rings_and_starts_again_on_its_schema(scene: Scene) -> None:
    newer.migrate(scene.database_url)
    # Its main process rings the run when it starts; the slots are the old worker's.
    with redis.Redis.from_url(scene.broker_url) as client:
        run_id = scene.begin("retried")
        client.delete("celegraph")
        scene.conn.execute("UPDATE runs SET rung_at = NULL, ring_at = ledger_now()")
        scene.worker("new", app=newer.APP, queues=["celegraph.control"], beat=True)
        eventually(lambda: any(run_id in message and newer.HINT in message for message in _messages(client)))

        old = scene.worker("old", queues=["celegraph"])

    scene.await_status(run_id, "finished")
    assert len(scene.provider.acts_of(run_id)) == 1
    assert "TypeError" not in old.log


def _messages(client: redis.Redis) -> list[str]:
    """The bodies of what lies in the run queue."""
    return [base64.b64decode(json.loads(raw)["body"]).decode() for raw in client.lrange("celegraph", 0, -1)]
