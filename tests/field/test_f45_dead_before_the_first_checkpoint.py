"""F45: dead before the first checkpoint; the sweep restarts the run with its input, once."""

from __future__ import annotations

import pytest

from celegraph.agent.saver import Saver
from celegraph.config import load_config
from celegraph.ledger.pool import ledger
from celegraph.ledger.sweep import sweep_once
from celegraph.testing.driver import Driver
from tests.support.driving import kinds
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain
from tests.support.waiting import eventually


def test_the_sweep_restarts_it_with_the_original_input_once(
    lonely_drive: Driver, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def node(state: State) -> State:
        log(f"node {state['order']}")
        return {"seen": ["done"]}

    def graph() -> Graph:
        return chain(node)

    async def die_instead(*_: object) -> None:
        die()

    with monkeypatch.context() as patched:
        patched.setattr(Saver, "aput", die_instead)
        process_dies(lambda: lonely_drive(graph(), {"order": "o-17"}, run_id="f45"))
    config = load_config({"database_url": lonely_drive.ledger.database_url})
    with ledger(config) as conn:
        eventually(lambda: sweep_once(conn, config).ring == ["f45"])
    run = lonely_drive(graph(), {"order": "o-17"}, run_id="f45")

    assert run.output == {"order": "o-17", "seen": ["done"]}
    assert log.lines == ["node o-17"]
    assert kinds(run).count("crashed") == 1


def test_a_run_that_was_admitted_and_never_rung_is_rung_by_the_sweep(lonely_drive: Driver) -> None:
    from celegraph.ledger import runs
    from celegraph.ledger.runs import Admission

    run = lonely_drive("tests.testing.agents:graph", {"n": 1})
    with ledger(run.installation.config) as conn:
        runs.admit(conn, Admission("never-rung", "agent", {"n": 1}, max_crashes=3))
        assert sweep_once(conn, run.installation.config).ring == ["never-rung"]
        assert sweep_once(conn, run.installation.config).ring == []
