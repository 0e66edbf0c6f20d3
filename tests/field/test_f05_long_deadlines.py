"""F05: long countdowns on Redis.  Deadlines live in PostgreSQL; no message waits for them."""

from __future__ import annotations

import redis

from celegraph import start_run
from tests.support.host import APP, VARIANT
from tests.support.scene import Scene
from tests.support.waiting import eventually

SOON, LATE = ("1s", "2s"), ("1h", "4h")
EACH = 4


def test_every_deadline_is_acted_on_once_and_no_message_is_held(scene: Scene) -> None:
    scene.worker("w", app=APP, env=scene.env() | {VARIANT: "impatient"}, beat=True)

    deadlines = {f"{after}-{i}": after for after in SOON + LATE for i in range(EACH)}
    for run_id, after in deadlines.items():
        start_run.delay("deadlined", {"decision": after}, run_id=run_id)

    due = [run_id for run_id, after in deadlines.items() if after in SOON]
    for run_id in due:
        assert scene.await_status(run_id, "finished").output["receipt"] == "expired"
    later = sorted(set(deadlines) - set(due))
    for run_id in later:
        assert scene.await_status(run_id, "waiting").status == "waiting"
    with redis.Redis.from_url(scene.broker_url) as client:
        eventually(lambda: client.zcard("unacked_index") == 0 and client.llen("celegraph") == 0)

    # Hours pass.
    scene.conn.execute(
        "UPDATE approvals SET deadline_at = ledger_now(), next_action_at = ledger_now() WHERE status = 'open'"
    )

    for run_id in later:
        assert scene.await_status(run_id, "finished").output["receipt"] == "expired"
    for run_id in deadlines:
        assert scene.kinds(run_id).count("expired") == 1
        assert scene.trail.steps(run_id) == ["last"]
