"""A run's stream as server-sent events, for any ASGI host: bytes to put into a streaming response.

Who may listen is the host's to decide, before it calls this.  For WSGI hosts there is nothing here: an open
stream would hold one of their threads for each viewer.  Let pages poll instead.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from celegraph.tasks.stream.items import StreamItem
from celegraph.tasks.stream.listen import astream_run

CONTENT_TYPE = "text/event-stream"
HEADERS = {
    # no-transform: a proxy that compresses would collect events before it sends them.
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    "Content-Encoding": "identity",
}
# Milliseconds until a browser whose connection broke comes again, with the cursor of what it has seen.
_RETRY = 2000


async def sse(run_id: str, *, after: str | None = None, heartbeat: float = 15.0) -> AsyncIterator[bytes]:
    """The run's stream, one event each, its `id:` the cursor; the last one is called "end".

    `after`: the request's Last-Event-ID.  `heartbeat`: seconds of silence after which a comment goes out,
    so that proxies keep the connection and a listener who is gone is noticed.  Raises as `stream_run`,
    with the first item; close it to stop listening, nothing is held in between.
    """
    listening = astream_run(run_id, after or None, idle=heartbeat)
    yield b"retry: %d\n\n" % _RETRY
    async for item in listening:
        yield frame(item)


def frame(item: StreamItem) -> bytes:
    """One item as it goes over the wire."""
    if item.kind == "idle":
        return b": nothing new\n\n"
    # json.dumps writes no line break, and nothing but ASCII.
    return f"id: {item.cursor}\nevent: {item.kind}\ndata: {json.dumps(item.as_json())}\n\n".encode()
