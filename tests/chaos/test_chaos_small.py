"""A minute of `make chaos`, in the suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.chaos import chaos
from tests.chaos.faults import Faults
from tests.chaos.schedule import DECK, plan


@pytest.mark.timeout(420)
def test_a_minute_of_everything_at_once_doubles_nothing_and_loses_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    verdict = chaos(tmp_path, said.append, seed=1, seconds=60, fsync=False)

    assert verdict.good, "\n".join([*said, str(verdict)])
    assert verdict.faults > 40
    assert verdict.runs > 10


def test_only_the_seed_decides_what_strikes_when() -> None:
    assert plan(1, 60) == plan(1, 60) != plan(2, 60)
    assert plan(1, 120)[: len(plan(1, 60))] == plan(1, 60)


def test_a_deck_holds_every_fault_and_is_dealt_to_its_end() -> None:
    struck = [fault.name for fault in plan(3, 600)]
    deck = sum(copies for copies, _ in DECK.values())

    for begin in range(0, len(struck) - deck + 1, deck):
        assert set(struck[begin : begin + deck]) == set(DECK)
    assert all(callable(getattr(Faults, name)) for name in DECK)
