"""The heartbeat of a slot: a daemon thread on the slot's second connection.

It lives beside the event loop, so a node that blocks the loop is seen as such (`loop_seen_at`) while
the process is seen alive.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from celegraph.agent.attempt import LOST
from celegraph.agent.endings import CANCEL, PAUSE
from celegraph.config import Config
from celegraph.ledger import leases
from celegraph.ledger.connect import Conn, connect
from celegraph.ledger.db_errors import in_log
from celegraph.ledger.leases import Beat

if TYPE_CHECKING:
    from celegraph.agent.attempt import Attempt

logger = logging.getLogger("celegraph")

# Seconds.  Between beats the run is only read, which costs no commit: a cancellation, or another owner,
# is noticed as fast as people expect.
_LOOK_EVERY = 1.0


@dataclass
class Pulse:
    """What the loop tells the heart: when it was last alive (monotonic seconds), and who runs."""

    attempt: Attempt | None = None
    loop_seen: float = field(default_factory=time.monotonic)
    # Seconds between beats: an agent's own heartbeats are passed on often enough to be believed.
    every: float = 10.0


class Heart:
    """Beats every `beat_every` while an attempt runs; at once when told to; until stopped."""

    def __init__(self, config: Config):
        self._config = config
        self._pulse = Pulse()
        self._nudge = threading.Event()
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._conn: Conn | None = None

    @contextlib.contextmanager
    def beating(self, attempt: Attempt) -> Iterator[Pulse]:
        """Renew this attempt's lease for the length of the block."""
        within = attempt.agent.heartbeat_within()
        self._pulse = Pulse(attempt, every=self._pace(within))
        if within is not None:
            self.nudge()  # the sweep knows what was promised only from the first beat
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._beat_until_stopped, name="celegraph-heart", daemon=True
            )
            self._thread.start()
        try:
            yield self._pulse
        finally:
            self._pulse.attempt = None

    def nudge(self) -> None:
        """Beat now: a drain has begun, and a kill that follows it is no crash of the run."""
        self._nudge.set()

    def stop(self) -> None:
        """End the thread and its connection; with the slot that owned it nobody else would."""
        self._stopped = True
        self._nudge.set()

    def join(self, seconds: float) -> None:
        """Wait until a stopped heart has let go of its connection."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _pace(self, heartbeat_within: timedelta | None) -> float:
        every = self._config.beat_every.total_seconds()
        return every if heartbeat_within is None else min(every, heartbeat_within.total_seconds() / 3)

    def _beat_until_stopped(self) -> None:
        beaten = time.monotonic()
        while True:
            nudged = self._nudge.wait(min(self._pulse.every, _LOOK_EVERY))
            self._nudge.clear()
            if self._stopped:
                self._drop()
                return
            pulse = self._pulse
            attempt = pulse.attempt
            if attempt is None:
                continue
            try:
                if nudged or time.monotonic() >= beaten + pulse.every:
                    beaten = time.monotonic()
                    self._heed(attempt, self._beat(attempt, pulse))
                else:
                    self._heed(attempt, leases.look(self._connection(), attempt.run_id, attempt.epoch))
            except Exception as error:
                # The database may be back at the next beat; the lease is long enough for several.
                logger.warning("heartbeat failed", extra={"run_id": attempt.run_id, "error": in_log(error)})
                self._drop()

    def _connection(self) -> Conn:
        if self._conn is None or self._conn.closed:
            self._conn = connect(self._config, application="celegraph heart")
        return self._conn

    def _beat(self, attempt: Attempt, pulse: Pulse) -> Beat | None:
        return leases.beat(
            self._connection(),
            attempt.run_id,
            attempt.epoch,
            loop_age=timedelta(seconds=time.monotonic() - pulse.loop_seen),
            draining=attempt.drain_reason not in (None, PAUSE),
            heartbeat_due=_silent_for(attempt, pulse.every),
            progress=attempt.progress,
        )

    @staticmethod
    def _heed(attempt: Attempt, answer: Beat | None) -> None:
        if answer is None:
            attempt.request_drain(LOST)
        elif answer.cancelled and attempt.drain_reason is None:
            logger.info("run is to be cancelled at its next step", extra={"run_id": attempt.run_id})
            attempt.request_drain(CANCEL)
        elif answer.pausing and attempt.drain_reason is None:
            logger.info("run is to be paused at its next step", extra={"run_id": attempt.run_id})
            attempt.request_drain(PAUSE)

    def _drop(self) -> None:
        if self._conn is not None:
            with contextlib.suppress(Exception):  # it is being thrown away because it does not work
                self._conn.close()
            self._conn = None


def _silent_for(attempt: Attempt, every: float) -> timedelta | None:
    """How long from now this attempt's nodes may be silent.

    One beat more than was promised: what they say right after this beat is written with the next one.
    """
    within = attempt.agent.heartbeat_within()
    if within is None or attempt.over:
        return None  # when the graph has stopped, nobody is left who could speak
    return within + timedelta(seconds=attempt.heard_at + every - time.monotonic())
