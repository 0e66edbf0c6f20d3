"""Doorbells that nobody answers: every run is rung again, and the queue does not grow."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from celegraph.config import Config
from celegraph.ledger.connect import Conn
from celegraph.ledger.sweep import sweep_once

_A_MINUTE = """
UPDATE runs SET ring_at = ring_at - interval '1 minute', rung_at = rung_at - interval '1 minute'
"""
RUNS = ["r1", "r2", "r3", "r4", "r5"]


class Standstill:
    """Runs are ready and no worker takes their doorbells; `queue` is what lies there."""

    def __init__(self, conn: Conn, config: Config, admit: Callable[[str], str]):
        self._conn = conn
        self._config = config
        self.queue: list[str] = []
        for run_id in RUNS:
            admit(run_id)

    def minutes(self, passed: int, *, others: int = 0) -> None:
        """Sweep once a minute, so many times; `others`: messages that are none of these."""
        for _ in range(passed):
            report = sweep_once(self._conn, self._config, queued=lambda: len(self.queue) + others)
            self.queue += report.ring
            self._conn.execute(_A_MINUTE)


@pytest.fixture
def standstill(conn: Conn, config: Config, admit: Callable[[str], str]) -> Standstill:
    return Standstill(conn, config, admit)


def test_a_queue_that_nobody_empties_stays_below_two_messages_for_each_ready_run(
    standstill: Standstill,
) -> None:
    standstill.minutes(9)

    assert set(standstill.queue) == set(RUNS)
    assert len(standstill.queue) < 2 * len(RUNS)


def test_a_lost_doorbell_behind_a_queue_that_is_never_empty_rings_again_all_the_same(
    standstill: Standstill,
) -> None:
    standstill.minutes(1)
    standstill.queue.clear()
    standstill.minutes(12, others=1000)

    assert set(standstill.queue) == set(RUNS)


def test_what_an_emptied_broker_has_lost_is_rung_at_once(standstill: Standstill) -> None:
    standstill.minutes(1)
    standstill.queue.clear()
    standstill.minutes(1)

    assert sorted(standstill.queue) == RUNS
