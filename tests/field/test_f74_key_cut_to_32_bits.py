"""F74: key cut to 32 bits; runs whose keys share half their bits do not wait for each other."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from celegraph.testing.driver import Driver
from tests.support.shapes import State, chain


@pytest.mark.parametrize("pair", [("run-17627", "run-41571"), ("run-8630", "run-36230")])
def test_two_runs_that_share_half_a_key_run_at_the_same_time(
    lonely_drive: Driver, pair: tuple[str, str]
) -> None:
    both_inside = threading.Barrier(2, timeout=20)

    def node(state: State) -> State:
        both_inside.wait()
        return {"seen": ["met"]}

    graph = chain(node)
    with ThreadPoolExecutor(2) as threads:
        runs = list(threads.map(lambda run_id: lonely_drive(graph, {}, run_id=run_id), pair))

    assert [run.output["seen"] for run in runs] == [["met"], ["met"]]
