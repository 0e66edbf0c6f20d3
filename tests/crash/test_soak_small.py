"""A few kills of `make crash`, in the suite."""

from __future__ import annotations

from pathlib import Path

from tests.crash.soak import plan, soak
from tests.support.scene import Scene
from tests.support.wire import Wire


def test_seeded_kills_double_nothing_and_lose_nothing(
    database_url: str, broker_url: str, tmp_path: Path
) -> None:
    said: list[str] = []
    with Wire(database_url) as wire, Scene(database_url, broker_url, tmp_path, settings={}) as scene:
        verdict = soak(scene, wire, 8, 1, said.append)

    assert (verdict.kills, verdict.duplicates, verdict.lost) == (8, 0, []), "\n".join(said)


def test_a_plan_visits_every_place_equally_and_only_the_seed_decides() -> None:
    places = [kill.place.name for kill in plan(42, 1)]

    assert all(places.count(name) == 2 for name in places)
    assert plan(42, 1) == plan(42, 1) != plan(42, 2)
