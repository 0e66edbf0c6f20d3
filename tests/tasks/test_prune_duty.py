"""The hourly duty: as configured, off by default, one message that expires."""

from __future__ import annotations

from typing import Any

import pytest

from celegraph.beat_schedule import PRUNE, beat_schedule
from celegraph.config import load_config
from celegraph.ledger.pool import ledger
from celegraph.ledger.sweep import last_tick
from celegraph.tasks import periodic
from celegraph.testing.driver import Driver
from tests.support.shapes import State, chain


def node(state: State) -> Any:
    return {"seen": ["done"]}


def test_beat_sends_it_every_hour_and_a_message_that_waited_an_hour_is_void() -> None:
    config = load_config({"database_url": "postgresql://localhost/x"})
    (entry,) = [e for e in beat_schedule(config).values() if e["task"] == PRUNE]

    assert entry["schedule"] == 3600
    assert entry["options"] == {"expires": 3600, "queue": config.queue}


@pytest.mark.parametrize(
    ("settings", "checkpoints", "events"),
    [({}, True, True), ({"retention": "30d"}, False, True), ({"event_retention": "30d"}, True, False)],
    ids=["off", "checkpoints", "events"],
)
def test_it_removes_what_the_configuration_says_and_nothing_by_default(
    lonely_drive: Driver, settings: dict[str, str], checkpoints: bool, events: bool
) -> None:
    run = lonely_drive(chain(node), {}, settings=settings)
    run.pass_time("31d")

    report = periodic.prune(run.installation)

    assert (report.checkpoints == 0) is checkpoints
    assert (report.events == 0) is events
    assert bool(run.events) is events
    with ledger(run.installation.config) as conn:
        tick = last_tick(conn, "prune")
    assert tick is not None
    assert tick.report["checkpoints"] == report.checkpoints
