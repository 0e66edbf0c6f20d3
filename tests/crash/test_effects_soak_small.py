"""A few kills of `make crash-effects`, in the suite."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.crash.effect_places import courses
from tests.crash.effects_soak import SETTINGS, plan, soak
from tests.support.policies import AGENTS
from tests.support.scene import Scene
from tests.support.wire import Wire


def test_seeded_kills_around_effects_double_nothing_and_lose_nothing(
    database_url: str, broker_url: str, tmp_path: Path
) -> None:
    said: list[str] = []
    with (
        Wire(database_url) as wire,
        Scene(database_url, broker_url, tmp_path, settings=SETTINGS, agents=AGENTS) as scene,
    ):
        verdict = soak(scene, wire, 20, 3, said.append, workers=2, side_by_side=5)

    assert (verdict.kills, verdict.duplicates, verdict.lost) == (20, 0, []), "\n".join(said)


def test_a_plan_has_so_many_kills_of_every_kind_and_only_the_seed_decides() -> None:
    round_of_all = sum(len(course.places) for course in courses())
    cases = plan(2 * round_of_all, 1)

    assert sum(len(case.course.places) for case in cases) == 2 * round_of_all
    assert set(Counter(case.course for case in cases).values()) == {2}
    assert cases == plan(2 * round_of_all, 1) != plan(2 * round_of_all, 2)
    assert len({case.run_id for case in cases}) == len(cases)
