"""F85: the sweeper adopts what has just been started."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from celegraph.ledger.connect import connect
from celegraph.ledger.sweep import sweep_once
from celegraph.testing.driver import Driver
from tests.support.log import Log
from tests.support.shapes import State, chain


def test_two_hundred_runs_started_under_a_tick_every_5_ms_are_entered_once_each(
    lonely_drive: Driver, log: Log
) -> None:
    def node(state: State) -> None:
        log(state["order"])

    graph = chain(node)
    config = lonely_drive(graph, {"order": "first"}).installation.config
    over = threading.Event()
    recovered: list[str] = []

    def tick() -> None:
        with connect(config) as conn:
            while not over.wait(0.005):
                report = sweep_once(conn, config)
                recovered.extend(report.recovered + report.terminated)

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        with ThreadPoolExecutor(4) as threads:
            runs = list(threads.map(lambda n: lonely_drive(graph, {"order": f"o-{n}"}), range(200)))
    finally:
        over.set()
        ticker.join()

    assert recovered == []
    assert {run.status for run in runs} == {"finished"}
    assert Counter(log.lines) == Counter(["first"] + [f"o-{n}" for n in range(200)])
