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

from celegraph.agent.runner import CANCEL
from celegraph.config import Config
from celegraph.ledger import leases
from celegraph.ledger.connect import Conn, connect

if TYPE_CHECKING:
    from celegraph.agent.attempt import Attempt

logger = logging.getLogger("celegraph")

LOST = "the run has another owner"


@dataclass
class Pulse:
    """What the loop tells the heart: when it was last alive (monotonic seconds), and who runs."""

    attempt: Attempt | None = None
    loop_seen: float = field(default_factory=time.monotonic)


class Heart:
    """Beats every `beat_every` while an attempt runs; at once when told to."""

    def __init__(self, config: Config):
        self._config = config
        self._pulse = Pulse()
        self._nudge = threading.Event()
        self._thread: threading.Thread | None = None
        self._conn: Conn | None = None
        self._stopped = False

    def stop(self) -> None:
        """Beat no more; the thread ends and closes its connection."""
        self._stopped = True
        self._nudge.set()

    @contextlib.contextmanager
    def beating(self, attempt: Attempt) -> Iterator[Pulse]:
        """Renew this attempt's lease for the length of the block."""
        self._pulse = Pulse(attempt)
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat_for_ever, name="celegraph-heart", daemon=True)
            self._thread.start()
        try:
            yield self._pulse
        finally:
            self._pulse.attempt = None

    def nudge(self) -> None:
        """Beat now: a drain has begun, and a kill that follows it is no crash of the run."""
        self._nudge.set()

    def drain(self, reason: str) -> None:
        """Ask the running attempt to stop at its next step."""
        attempt = self._pulse.attempt
        if attempt is not None:
            attempt.request_drain(reason)
            self.nudge()

    def _beat_for_ever(self) -> None:
        while not self._stopped:
            self._nudge.wait(self._config.beat_every.total_seconds())
            self._nudge.clear()
            pulse = self._pulse
            attempt = pulse.attempt
            if attempt is None:
                continue
            try:
                self._beat(attempt, pulse)
            except Exception as error:
                # The database may be back at the next beat; the lease is long enough for several.
                logger.warning("heartbeat failed", extra={"run_id": attempt.run_id, "error": repr(error)})
                self._drop()
        self._drop()

    def _beat(self, attempt: Attempt, pulse: Pulse) -> None:
        if self._conn is None or self._conn.closed:
            self._conn = connect(self._config, application="celegraph heart")
        age = timedelta(seconds=time.monotonic() - pulse.loop_seen)
        answer = leases.beat(
            self._conn,
            attempt.run_id,
            attempt.epoch,
            loop_age=age,
            draining=attempt.drain_reason is not None,
        )
        if answer is None:
            attempt.request_drain(LOST)
        elif answer.cancelled:
            attempt.request_drain(CANCEL)

    def _drop(self) -> None:
        if self._conn is not None:
            with contextlib.suppress(Exception):  # it is being thrown away because it does not work
                self._conn.close()
            self._conn = None
