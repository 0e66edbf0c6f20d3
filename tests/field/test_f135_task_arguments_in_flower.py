"""F135 Task arguments in Flower: nothing of the customer in its API, in the worker's log or in Redis."""

from __future__ import annotations

import base64
import re

import redis

from celegraph import decide, start_run
from tests.support.flower import Flower
from tests.support.scene import Scene

IBAN, NOTE = "DE00TEST", "secret-note"


def test_input_and_note_are_in_postgresql_and_nowhere_else(scene: Scene) -> None:
    with Flower(scene) as flower:
        run_id = start_run.delay("approved", {"cents": 5, "iban": IBAN}, run_id="f135").id
        before = redis_dump(scene)  # the doorbell lies in its queue
        worker = scene.worker("w", options=["-E"])
        question = scene.question(run_id)
        decide(question.approval_id, "approve", by="ana", note=NOTE)
        scene.await_status(run_id, "finished")
        flower.await_states(run_id, ["RETRY", "SUCCESS"])
        seen = {
            "flower": flower.everything(),
            "flower's log": flower.log,
            "worker's log": worker.log,
            "redis": before + redis_dump(scene),
        }

    assert run_id in seen["flower"]
    assert f'"run_id": "{run_id}"' in seen["redis"]
    assert scene.run(run_id).input["iban"] == IBAN
    for place, text in seen.items():
        assert IBAN not in text, place
        assert NOTE not in text, place


def redis_dump(scene: Scene) -> str:
    """Every value of every key; messages also with their bodies decoded."""
    found: list[bytes] = []
    messages: list[bytes] = []
    with redis.Redis.from_url(scene.broker_url) as client:
        for key in client.scan_iter("*"):
            found.append(client.dump(key) or b"")
            if client.type(key) == b"list":
                messages += client.lrange(key, 0, -1)
            elif client.type(key) == b"hash":
                messages += client.hgetall(key).values()
    bodies = [base64.b64decode(b) for m in messages for b in re.findall(rb'"body": "([^"]+)"', m)]
    return repr(found + messages + bodies)
