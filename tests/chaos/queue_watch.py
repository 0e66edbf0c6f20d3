"""Does the queue grow?  Doorbells in the broker beside the runs that are ready, looked at all the time."""

from __future__ import annotations

import json
from dataclasses import dataclass

import psycopg
import redis

from celegraph.tasks.ring import RESUME, START
from tests.support.scene import Scene

# The chaos rings by itself (doubled and late doorbells), and the broker delivers again what a dead worker
# had taken: so many are nobody's growth.
_NOT_OURS = 40


@dataclass(frozen=True)
class Seen:
    """One look: doorbells in the queue, and runs that are ready."""

    doorbells: int
    ready: int

    @property
    def grows(self) -> bool:
        """Below twice the ready runs is the promise."""
        return self.doorbells > 2 * self.ready + _NOT_OURS


class QueueWatch:
    """Looks, and remembers the worst."""

    def __init__(self, scene: Scene):
        self._scene = scene
        self.worst = Seen(0, 0)

    def look(self) -> None:
        """Once."""
        with psycopg.connect(self._scene.database_url, connect_timeout=2) as conn:
            row = conn.execute("SELECT count(*) FROM celegraph.runs WHERE status = 'ready'").fetchone()
        assert row is not None
        seen = Seen(self.doorbells(), int(row[0]))
        if seen.doorbells - 2 * seen.ready > self.worst.doorbells - 2 * self.worst.ready:
            self.worst = seen

    def doorbells(self) -> int:
        """Messages about runs in the run queue; the clock's own expire."""
        with redis.Redis.from_url(
            self._scene.broker_url, socket_timeout=1, socket_connect_timeout=1
        ) as client:
            messages = client.lrange(self._scene.config.queue, 0, -1)
        return sum(json.loads(message)["headers"]["task"] in (START, RESUME) for message in messages)
