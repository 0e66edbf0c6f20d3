"""What an effect costs, counted: two commits and two round trips.  `make bench-effect` measures the time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from celegraph.agent import held
from celegraph.agent.migrate import migrate
from celegraph.dev.home import Home
from celegraph.dev.postgres import Postgres
from tests.bench.effect import commits_per_effect, round_trips_per_effect

_EFFECTS = 25


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A server of our own: nobody else may commit while we count, and its log is made to tell all."""
    with Postgres(Home.passing(in_memory=True), fsync=False) as server:
        migrate(server.url)
        yield server


def test_an_effect_is_two_commits_and_two_round_trips(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Runs of different length are compared: all else, the commit of a step with its writes, must be the same.
    monkeypatch.setattr(held, "_HOLD", 30.0)
    commits = commits_per_effect(server.url, _EFFECTS)
    round_trips = round_trips_per_effect(server.url, server.directory / "log", _EFFECTS)

    assert (commits, round_trips) == (2.0, 2.0)
