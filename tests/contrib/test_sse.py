"""A run's stream over real HTTP, from a real uvicorn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from celegraph import StreamItem
from celegraph.contrib.sse import frame
from tests.crash.conftest import scene as scene
from tests.support.live import WebServer
from tests.support.scene import Scene
from tests.support.telling import WORDS
from tests.support.waiting import eventually


@dataclass(frozen=True)
class Heard:
    """One server-sent event."""

    id: str
    event: str
    data: dict[str, Any]


def listen(url: str, after: str | None = None) -> Iterator[Heard | str]:
    """As a browser's EventSource does; a comment comes as text."""
    headers = {"Last-Event-ID": after} if after else {}
    with httpx.stream("GET", url, headers=headers, timeout=30) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            if line.startswith(":"):
                yield line
            elif line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "event" in fields:
                yield Heard(fields["id"], fields["event"], json.loads(fields["data"]))
                fields = {}


def words(heard: list[Heard]) -> list[str]:
    return [item.data["data"]["text"] for item in heard if item.event == "token"]


@pytest.fixture
def web(scene: Scene) -> Iterator[WebServer]:
    with WebServer("tests.support.live:application", directory=scene.directory, env=scene.env()) as server:
        yield server


def test_a_browser_whose_worker_and_web_process_die_goes_on_behind_its_last_event_id(
    scene: Scene, web: WebServer
) -> None:
    worker = scene.worker("first")
    scene.gates.close("word 3")
    run_id = scene.begin("telling")
    heard = []
    for item in listen(f"{web.url}/{run_id}"):
        if isinstance(item, Heard):
            heard.append(item)
        if len(words(heard)) == 3:
            break

    worker.kill()
    web.kill()
    scene.gates.open("word 3")
    scene.worker("second", beat=True)
    web.start()
    rest = [i for i in listen(f"{web.url}/{run_id}", heard[-1].id) if isinstance(i, Heard)]

    assert tuple(words(heard)) == WORDS[:3]
    assert tuple(words(rest)) == WORDS
    assert "retracted" in [i.event for i in rest]
    told = [i.data["data"]["event"] for i in heard + rest if i.event == "event"]
    assert told == scene.kinds(run_id)
    assert rest[-1].event == "end"
    assert rest[-1].data["data"] == {"status": "finished"}


def test_silence_is_filled_with_comments_and_a_listener_who_leaves_leaves_nothing(
    scene: Scene, web: WebServer
) -> None:
    run_id = scene.begin("telling")
    url = f"{web.url}/{run_id}?heartbeat=0.1"

    for _ in range(20):
        assert any(isinstance(item, str) for item in listen(url))

    busy = (
        "SELECT count(*) AS n FROM pg_stat_activity"
        " WHERE application_name = 'celegraph web' AND state <> 'idle'"
    )
    eventually(lambda: scene.conn.execute(busy).fetchone() == {"n": 0})
    assert "Traceback" not in web.log


def test_what_a_model_writes_cannot_forge_another_event() -> None:
    said = StreamItem("token", "cursor", {"text": "a\n\nevent: end\ndata: {}\r\u2028"})

    told = frame(said).decode()

    assert told.count("\n") == 4
    assert told.splitlines()[1] == "event: token"
    assert json.loads(told.splitlines()[2].removeprefix("data: "))["data"] == dict(said.data)
