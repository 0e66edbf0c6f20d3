"""The Redis or Valkey that carries chunks: one capped stream per run, gone an hour after its last chunk.

An entry's id is `epoch-number`, chosen by us: the numbers of an attempt have no holes, so a reader sees
what is missing; an entry that is sent twice is refused the second time; and whatever a stale owner still
says after its successor has spoken is refused by the server.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from celegraph.tasks.installation import Installation
from celegraph.tasks.ring import bounded

Position = tuple[int, int]  # epoch, number

# Seconds.  For connecting and for an answer; nobody waits for chunks longer.
_TIMEOUT = 1.0
# Seconds for which a server that did not answer is not asked again.
_REST = 3.0
# Kombu's pool refuses the eleventh connection; readers are as many as the host has threads.
_CONNECTIONS = 64
# What a server says that will take the same command later.
_LATER = ("OOM", "READONLY", "LOADING", "MASTERDOWN", "BUSY")
CLOSED = "closed"


class StreamUnreachable(Exception):
    """The server of the chunks does not answer, or not as it should.  Runs and events go on without."""


@dataclass(frozen=True)
class Entry:
    """One chunk as it travels."""

    run_id: str
    position: Position
    body: str


class StreamServer:
    """A client that never waits for long and makes a new connection after each failure."""

    def __init__(self, inst: Installation):
        self._inst = inst
        self._client: Any = None
        self._prefix = ""
        self._rest_until = 0.0
        self._lock = threading.Lock()

    def append(self, entries: Sequence[Entry]) -> int:
        """Add chunks; returns how many the server refused for good: already there, stale, not permitted.

        StreamUnreachable: some may have been added, and all may be sent again.
        """
        config = self._inst.config
        with self._asking() as client:
            pipe = client.pipeline(transaction=False)
            for entry in entries:
                pipe.xadd(
                    self._key(entry.run_id),
                    {"c": entry.body},
                    id="{}-{}".format(*entry.position),
                    maxlen=config.stream_max_chunks,
                    approximate=True,
                )
            for run_id in dict.fromkeys(entry.run_id for entry in entries):
                pipe.pexpire(self._key(run_id), int(config.stream_keep.total_seconds() * 1000))
            answers = pipe.execute(raise_on_error=False)
            refused = [a for a in answers[: len(entries)] if isinstance(a, Exception)]
            for error in refused:
                if str(error).startswith(_LATER) or not isinstance(error, redis.ResponseError):
                    raise error
            return len(refused)

    def read(self, run_id: str, after: Position, count: int) -> list[tuple[Position, str]]:
        """The chunks after a position, oldest first."""
        with self._asking() as client:
            found = client.xrange(self._key(run_id), min="({}-{}".format(*after), count=count)
            return [(_position(entry_id), _text(fields)) for entry_id, fields in found]

    def newest(self, run_id: str) -> tuple[Position, bool] | None:
        """Where the stream ends, and whether its attempt has closed it; None: there is none."""
        with self._asking() as client:
            found = client.xrevrange(self._key(run_id), count=1)
            return (_position(found[0][0]), is_closed(_text(found[0][1]))) if found else None

    @property
    def resting(self) -> bool:
        """It has just failed, and is left alone for a while."""
        return time.monotonic() < self._rest_until

    @contextlib.contextmanager
    def _asking(self) -> Any:
        try:
            yield self._connected()
        except Exception as error:
            # Whatever kombu, redis or the socket say.  The pool may hold sockets with half an answer.
            self._rest_until = time.monotonic() + _REST
            client, self._client = self._client, None
            if client is not None:
                with contextlib.suppress(Exception):
                    client.connection_pool.disconnect()
            raise StreamUnreachable(type(error).__name__) from error

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client, self._prefix = _connect(self._inst)
            return self._client

    def _key(self, run_id: str) -> str:
        # Hosts share a Redis; two ledgers in it may know the same run_id.
        ledger = hashlib.sha256(self._inst.config.schema_name.encode()).hexdigest()[:8]
        return f"{self._prefix}celegraph:stream:{ledger}:{run_id}"


def is_closed(body: str) -> bool:
    """The entry ends its attempt's telling."""
    try:
        return bool(json.loads(body).get("kind") == CLOSED)
    except (ValueError, AttributeError):
        return False  # not ours


def _connect(inst: Installation) -> tuple[Any, str]:
    if inst.config.stream_url:
        client = redis.Redis.from_url(
            inst.config.stream_url,
            socket_timeout=_TIMEOUT,
            socket_connect_timeout=_TIMEOUT,
            retry=Retry(NoBackoff(), 0),
        )
        return client, ""
    # kombu's own client: TLS, sentinels and credentials mean what they mean to a worker.
    host = inst.app.connection_for_write()
    options = bounded(host, _TIMEOUT) | {"max_connections": _CONNECTIONS}
    channel: Any = host.clone(transport_options=options, connect_timeout=_TIMEOUT).default_channel
    return channel.client, str(options.get("global_keyprefix") or "")


def _position(entry_id: bytes | str) -> Position:
    text = entry_id.decode() if isinstance(entry_id, bytes) else entry_id
    epoch, _, number = text.partition("-")
    return int(epoch), int(number)


def _text(fields: Any) -> str:
    body = fields.get(b"c", fields.get("c", ""))
    return body.decode(errors="replace") if isinstance(body, bytes) else str(body)


_servers: dict[tuple[int, Installation], StreamServer | None] = {}


def server_of(inst: Installation) -> StreamServer | None:
    """This process's client; None when there is nothing to carry chunks (another broker, no stream_url)."""
    key = (os.getpid(), inst)  # a child never uses its parent's sockets
    if key not in _servers:
        _servers[key] = StreamServer(inst) if _carried(inst) else None
    return _servers[key]


def _carried(inst: Installation) -> bool:
    if inst.config.stream_url:
        return True
    try:
        return inst.app.connection_for_write().transport.driver_type == "redis"
    except Exception:
        return False  # no broker at all: an installation that knows only the database
