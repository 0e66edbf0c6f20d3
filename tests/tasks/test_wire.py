"""What celegraph puts into the broker: run ids, and nothing of the customer."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from celegraph import decide, start_run
from celegraph.beat_schedule import TICKS
from tests.support.scene import Scene
from tests.support.waiting import eventually

SECRET = "geheim-4711"
END = "end of the test"


class Wire:
    """Every command that anybody has sent to the broker."""

    def __init__(self, url: str):
        self.client = redis.Redis.from_url(url, socket_timeout=None)
        self.commands: list[str] = []

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Listen for the length of the block."""
        connection: Any = self.client.connection_pool.get_connection()
        connection.send_command("MONITOR")
        connection.read_response()
        done = threading.Event()

        def listen() -> None:
            # redis-py's own monitor() gives up on commands that hold quotes.
            while END not in (line := connection.read_response().decode()):
                self.commands.append(line)
            done.set()

        threading.Thread(target=listen, daemon=True).start()
        yield
        self.client.echo(END)
        assert done.wait(10)
        connection.disconnect()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """celegraph's messages about runs, in order; not its ticks."""
        found = []
        for command in self.commands:
            _, pushed, body = command.partition('"LPUSH" "celegraph" ')
            if pushed:
                found.append(json.loads(json.loads(body)))
        return [message for message in found if message["headers"]["task"] not in TICKS]


@pytest.fixture
def wire(broker_url: str) -> Iterator[Wire]:
    """The shared broker, watched."""
    watcher = Wire(broker_url)
    with watcher.client:
        yield watcher


def _body(message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    args, kwargs, _ = json.loads(base64.b64decode(message["body"]))
    return args, kwargs


def test_messages_carry_the_run_id_and_nothing_of_the_customer(scene: Scene, wire: Wire) -> None:
    with wire.watched():
        scene.worker("w", beat=True, options=["-E"])
        start_run.delay("approved", {"cents": 1, "decision": SECRET}, run_id="r-1")
        question = scene.question("r-1")
        decide(question.approval_id, "approve", by="anna", note=SECRET, value=SECRET)
        scene.await_status("r-1", "finished")

    assert scene.run("r-1").input["decision"] == SECRET
    sent = " ".join(wire.commands)
    assert "r-1" in sent
    assert SECRET not in sent
    # Not even encoded: bodies are base64 at every offset.
    assert all(SECRET not in base64.b64decode(message["body"]).decode() for message in wire.messages)
    for message in wire.messages:
        assert _body(message) == ([], {"run_id": "r-1"})
        assert message["content-type"] == "application/json"
        assert message["headers"]["eta"] is None
        assert message["headers"]["expires"] is None
        assert message["headers"]["argsrepr"] == "()"
    shown = {message["headers"]["kwargsrepr"] for message in wire.messages}
    reasons = ("started", "decided", "due again", "found by the sweep")
    assert shown <= {f"{{'run_id': 'r-1', 'agent': 'approved', 'reason': '{reason}'}}" for reason in reasons}


def test_only_the_first_message_has_the_run_id_as_its_task_id(scene: Scene, wire: Wire) -> None:
    with wire.watched():
        scene.worker("w", beat=True)
        run_id = scene.begin("approved")
        decide(scene.question(run_id).approval_id, "approve", by="anna")
        scene.await_status(run_id, "finished")

    ids = [message["headers"]["id"] for message in wire.messages]
    # Not always the first on the wire: the sweep may ring between the commit and the publishing.
    assert run_id in ids
    assert len(ids) >= 2
    assert len(set(ids)) == len(ids)


def test_a_finished_run_leaves_no_message_behind(scene: Scene, wire: Wire) -> None:
    scene.worker("w", beat=True)
    run_id = scene.begin("steps")
    scene.await_status(run_id, "finished")

    eventually(lambda: wire.client.hlen("unacked") == 0 and wire.client.llen("celegraph") == 0)
