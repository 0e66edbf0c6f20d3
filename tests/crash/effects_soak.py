"""`make crash-effects N=1000 SEED=1`: seeded kills over every point around an effect, all policies.

Effects called in nodes, awaited ones, and intents of the outbox; retry, reconcile and ask.  A person
answers the questions truthfully.  Several runs are killed side by side, and no kill waits for the
recovery of another.  The oracle is the provider's own log; exit status 1 if an act was doubled or lost.
"""

from __future__ import annotations

import itertools
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from tests.crash.effect_places import Course, courses
from tests.crash.fleet import Fleet, Say, run_soak
from tests.crash.person import Person
from tests.crash.places import Place
from tests.support.policies import AGENTS
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.wire import Wire

# A doubt is answered two seconds after its claim instead of after a minute.  The runs do not die of
# their own: dying often says nothing against them.
SETTINGS = {"call_window": "1s", "max_crashes": "20"}
_WORKERS = 4
# More than there are children, because most of the time of a second kill is waiting for a horizon.
_SIDE_BY_SIDE = 10
# Of so many kills one takes a whole worker, with whatever else it is doing.
_WHOLE_WORKER_EVERY = 40
_TRIES = 3
_END_WITHIN = 180.0


@dataclass(frozen=True)
class Case:
    """One run and where it is killed.  `whole`: by the death of its worker, beside no other kill.

    `again`: the run before it got away, because its call was given up before it could be killed.
    """

    number: int
    course: Course
    whole: bool
    again: int = 0

    @property
    def run_id(self) -> str:
        """Of one length: a run is recognised by its id in statements, so none may contain another."""
        return f"killed-{self.number:05}-{self.again}"

    def __str__(self) -> str:
        return f"{'worker' if self.whole else 'child '} {self.course}"


@dataclass
class Verdict:
    """What the soak has found."""

    kills: int = 0
    duplicates: int = 0
    lost: list[str] = field(default_factory=list)
    asked: int = 0
    reconciled: int = 0
    retried: int = 0

    @property
    def good(self) -> bool:
        """Nothing doubled, nothing lost."""
        return not self.duplicates and not self.lost

    def __str__(self) -> str:
        return (
            f"kills={self.kills} duplicates={self.duplicates} lost={len(self.lost)}"
            f" asked={self.asked} reconciled={self.reconciled} retried={self.retried}"
        )


def plan(kills: int, seed: int) -> list[Case]:
    """Exactly `kills` kills; every course as often as every other, in an order that the seed decides."""
    chance = random.Random(seed)
    cases: list[Case] = []
    left = kills
    while left:
        for course in chance.sample(courses(), len(courses())):
            if left:
                course = Course(course.agent, course.places[:left])
                cases.append(Case(len(cases) + 1, course, chance.randrange(_WHOLE_WORKER_EVERY) == 0))
                left -= len(course.places)
    return cases


class EffectsSoak:
    """Carries out a plan in a scene."""

    def __init__(self, scene: Scene, wire: Wire, say: Say, *, workers: int, side_by_side: int):
        self._scene = scene
        self._fleet = Fleet(scene, wire, workers)
        self._side_by_side = side_by_side
        self._say = say
        self._lock = threading.Lock()
        self._kills = 0
        self._missed: list[str] = []
        self._runs: dict[str, Case] = {}

    def run(self, cases: list[Case]) -> Verdict:
        """Every kill, then the accounts."""
        self._fleet.launch()
        with Person(self._scene.provider), ThreadPoolExecutor(self._side_by_side) as pool:
            for whole, some in itertools.groupby(cases, key=lambda case: case.whole):
                for _ in map(self._carry_out, some) if whole else pool.map(self._carry_out, some):
                    pass
            unfinished = self._await_ends()
        return self._accounts(unfinished)

    def _carry_out(self, case: Case) -> None:
        if case.whole:
            self._fleet.await_whole()
        begun, left = time.monotonic(), len(case.course.places)
        for again in range(_TRIES):
            course = replace(case.course, places=case.course.places[:left])
            left -= self._kill(replace(case, course=course, again=again))
            if not left:
                break
        else:
            self._missed.append(str(case))
        self._say(f"{self._kills:4} {case!s:70} {time.monotonic() - begun:.1f} s")

    def _kill(self, case: Case) -> int:
        """How many kills it came to."""
        struck: list[int] = []
        with self._lock:
            self._runs[case.run_id] = case
        try:
            self._kill_at(
                case,
                case.course.places,
                lambda: self._scene.begin(case.course.agent, run_id=case.run_id),
                struck,
            )
        except AssertionError as error:
            self._show(case, f"got away: {error}")
        return len(struck)

    def _kill_at(
        self, case: Case, places: tuple[Place, ...], begin: Callable[[], object], struck: list[int]
    ) -> None:
        """Kill at the first place; the next one is watched before the victim is dead."""
        with self._fleet.post(places[0], case.run_id) as post:
            begin()
            pid = post.await_arrival()

            def strike() -> None:
                if case.whole:
                    self._fleet.kill_whole(pid).launch()
                else:
                    self._fleet.kill(pid)
                struck.append(pid)
                with self._lock:
                    self._kills += 1
                post.leave()

            if len(places) == 1:
                strike()
            else:
                self._kill_at(case, places[1:], strike, struck)

    def _await_ends(self) -> set[str]:
        """Wait until every run has finished and every effect is done; returns those that never are."""
        left = set(self._runs)

        def all_over() -> bool:
            left.difference_update(self._over())
            return not left

        try:
            eventually(all_over, within=_END_WITHIN)
        except AssertionError:
            self._say(f"still open: {sorted(left)}")
        return left

    def _over(self) -> list[str]:
        rows = self._scene.conn.execute(
            "SELECT run_id FROM runs r WHERE status = 'finished' AND EXISTS (SELECT FROM effects e"
            " WHERE e.run_id = r.run_id AND e.status IN ('sent', 'confirmed'))"
        ).fetchall()
        return [str(row["run_id"]) for row in rows]

    def _accounts(self, unfinished: set[str]) -> Verdict:
        """By the provider's log; of our own rows only that they say the same."""
        acts = self._scene.provider.acts()
        keys: dict[str, list[str]] = {}
        for act in acts:
            keys.setdefault(act.body["run_id"], []).append(act.key)
        verdict = Verdict(self._kills, lost=self._missed)
        for case in self._runs.values():
            done = [row.idempotency_key for row in self._scene.effects(case.run_id) if row.done]
            verdict.duplicates += max(0, len(keys.get(case.run_id, [])) - 1)
            if case.run_id in unfinished or set(done) != set(keys.get(case.run_id, [])) or not done:
                verdict.lost.append(case.run_id)
        self._count(verdict)
        for case in self._runs.values():
            if case.run_id in verdict.lost or len(keys.get(case.run_id, [])) > 1:
                self._show(case, f"acts: {Counter(keys.get(case.run_id, []))}")
        return verdict

    def _count(self, verdict: Verdict) -> None:
        row = self._scene.conn.execute(
            "SELECT (SELECT count(*) FROM approvals WHERE kind = 'doubt') AS asked,"
            " (SELECT count(*) FROM run_events WHERE data ->> 'by' = 'look-up') AS reconciled,"
            " (SELECT coalesce(sum(greatest(0, attempts - 1)), 0) FROM effects) AS retried"
        ).fetchone()
        assert row is not None
        verdict.asked, verdict.reconciled, verdict.retried = (
            int(row[name]) for name in ("asked", "reconciled", "retried")
        )

    def _show(self, case: Case, what: str) -> None:
        scene = self._scene
        self._say(f"{case} {what}\n{scene.run(case.run_id)}\n{scene.effects(case.run_id)}")
        for event in scene.events(case.run_id):
            self._say(f"  {event.at:%M:%S.%f} {event.epoch} {event.kind} {dict(event.data)}")


def soak(
    scene: Scene,
    wire: Wire,
    kills: int,
    seed: int,
    say: Say,
    *,
    workers: int = _WORKERS,
    side_by_side: int = _SIDE_BY_SIDE,
) -> Verdict:
    """Carry out a seeded plan of `kills` kills."""
    doing = EffectsSoak(scene, wire, say, workers=workers, side_by_side=side_by_side)
    return doing.run(plan(kills, seed))


if __name__ == "__main__":
    sys.exit(run_soak(__doc__, soak, settings=SETTINGS, agents=AGENTS))
