"""A real Flower beside a scene's workers, read through its HTTP API and its page's own table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import redis

from celegraph.dev.server import free_port
from tests.support.process import Process
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.workers import APP

_PASSWORD = "only-for-tests"


class Flower(Process):
    """`celery flower` with our settings; closed to who has no password, as in production."""

    def __init__(self, scene: Scene):
        conf = scene.directory / "flowerconfig.py"
        conf.write_text(
            f"from celegraph.contrib.flower import *\nbasic_auth = ['me:{_PASSWORD}']\n", encoding="utf-8"
        )
        port = free_port()
        self._broker_url = scene.broker_url
        self._web = httpx.Client(base_url=f"http://127.0.0.1:{port}", auth=("me", _PASSWORD), timeout=20)
        words = ["-m", "celery", "-A", APP, "flower", "--address=127.0.0.1", f"--port={port}"]
        super().__init__(
            "flower", [*words, f"--conf={conf}"], log=Path(scene.directory) / "flower.log", env=scene.env()
        )

    def is_ready(self) -> bool:
        """It serves and listens to events."""
        return "Visit me at" in self.log and self._says("/api/workers") and self._listens()

    def _listens(self) -> bool:
        # Nobody keeps an event for who subscribes later.
        with redis.Redis.from_url(self._broker_url) as client:
            return bool(client.pubsub_numpat())

    def _says(self, path: str) -> bool:
        try:
            return self._web.get(path).status_code == 200
        except httpx.TransportError:
            return False

    def tasks(self, run_id: str) -> list[dict[str, Any]]:
        """The API's rows of a run's doorbells, in the order in which they came."""
        found = [t for t in self._web.get("/api/tasks").json().values() if run_id in (t["kwargs"] or "")]
        return sorted(found, key=lambda task: task["received"] or 0)

    def await_states(self, run_id: str, expected: list[str]) -> None:
        """Wait until the run's doorbells, the sweep's aside, are in these states.

        AssertionError with Flower's whole list if they never are.
        """
        try:
            eventually(lambda: [t["state"] for t in self.tasks(run_id) if not _swept(t)] == expected)
        except AssertionError:
            raise AssertionError(f"not {expected}: {self._web.get('/api/tasks').text}\n{self.log}") from None

    def rows(self, run_id: str) -> list[dict[str, Any]]:
        """The same as the page shows them, the sweep's aside."""
        asked: dict[str, str | int] = {
            "draw": 1,
            "start": 0,
            "length": 100,
            "order[0][column]": 0,
            "order[0][dir]": "asc",
        }
        asked["columns[0][data]"] = "received"
        rows = self._web.get("/tasks/datatable", params=asked).json()["data"]
        return [row for row in rows if f"run {run_id}," in row["kwargs"] and not _swept(row)]

    def everything(self) -> str:
        """All that Flower can be asked for."""
        ids = self._web.get("/api/tasks").json()
        paths = ["/api/tasks", "/api/workers?refresh=1", "/api/task/types", "/metrics", "/tasks", "/workers"]
        paths += [f"/{kind}/{name}" for name in ids for kind in ("api/task/info", "task")]
        return "\n".join(self._web.get(path).text for path in paths)

    def columns(self) -> str:
        """The heads of the page's table."""
        return self._web.get("/tasks").text


def _swept(row: dict[str, Any]) -> bool:
    """It rings once more when a busy worker has a doorbell and has not begun: no test can know how often."""
    return "found by the sweep" in str(row["kwargs"])
