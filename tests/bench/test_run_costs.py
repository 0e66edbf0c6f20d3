"""What a durable run costs, counted: fewer commits than LangGraph.  `make bench-run` measures the time."""

from __future__ import annotations

import pytest

from celegraph.agent import held
from celegraph.agent.migrate import migrate
from celegraph.dev.home import Home
from celegraph.dev.postgres import Postgres
from tests.bench.run import STEPS, Pair, commits_of


def test_a_durable_run_commits_once_a_step_and_less_often_than_a_bare_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whatever this machine is busy with: what is counted is the commits of a step whose writes ride along.
    monkeypatch.setattr(held, "_HOLD", 30.0)
    # A server of our own: nobody else may commit while we count.
    with Postgres(Home.passing(in_memory=True), fsync=False) as server:
        migrate(server.url)
        pair = Pair(server.url)
        pair.durable()

        durable, bare = commits_of(server.url, pair.durable, 5), commits_of(server.url, pair.bare, 5)

    # Admission, begin and settle, the input's two checkpoints, and the steps.
    assert durable == 3 + 2 + STEPS
    assert durable < bare
