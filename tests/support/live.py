"""A web process that streams: `uvicorn tests.support.live:application`, without any framework."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from celegraph.contrib.sse import CONTENT_TYPE, sse
from celegraph.dev.server import free_port
from tests.support.process import Process


class WebServer(Process):
    """uvicorn with an ASGI application of the tests."""

    def __init__(self, application: str, *, directory: Path, env: Mapping[str, str]):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        words = ["-m", "uvicorn", application, "--port", str(self.port), "--lifespan", "off"]
        super().__init__("web", words, log=directory / "web.log", env=env)

    def is_ready(self) -> bool:
        """It listens."""
        return "Uvicorn running" in self.log


async def application(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
    """GET /RUN_ID: its stream."""
    from tests.support.app import app

    app.set_current()
    headers = dict(scope["headers"])
    after = headers.get(b"last-event-id", b"").decode() or None
    beat = float(parse_qs(scope["query_string"].decode()).get("heartbeat", ["15"])[0])
    start = {"status": 200, "headers": [(b"content-type", CONTENT_TYPE.encode())]}
    await send({"type": "http.response.start", **start})
    async for part in sse(scope["path"].lstrip("/"), after=after, heartbeat=beat):
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body"})
