"""`make crash N=100 SEED=1`: seeded kills over every stage of a run, against real servers.

Two prefork workers, the control worker, beat and the provider, with celegraph's default settings and
databases that keep what they acknowledge.  The last line says what became of it; exit status 1 if an
act was doubled, a run lost, or recovery slower than promised.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from dataclasses import dataclass, field

from tests.crash.fleet import Fleet, Say, run_soak
from tests.crash.places import GATES, STATEMENTS, Place
from tests.support.scene import Scene
from tests.support.wire import Wire

P50_LIMIT = 1.5
MAX_LIMIT = 4.0
# Of ten kills so many take the whole worker; its main process and both children at once.
_WHOLE_WORKERS = 3
_AGENTS = ("retried", "awaited", "looked_up")
_END_WITHIN = 60.0
_LOOK_EVERY = 0.005


@dataclass(frozen=True)
class Kill:
    """One planned kill."""

    number: int
    place: Place
    agent: str
    whole: bool

    @property
    def run_id(self) -> str:
        """The run whose process is killed."""
        return f"kill-{self.number}"

    def __str__(self) -> str:
        return f"{'worker' if self.whole else 'child '} {self.agent:9} {self.place.name}"


@dataclass
class Verdict:
    """What the soak has found."""

    kills: int = 0
    duplicates: int = 0
    lost: list[str] = field(default_factory=list)
    recoveries: list[float] = field(default_factory=list)

    @property
    def p50(self) -> float:
        """The median recovery in seconds."""
        return statistics.median(self.recoveries) if self.recoveries else 0.0

    @property
    def slowest(self) -> float:
        """The slowest recovery in seconds."""
        return max(self.recoveries, default=0.0)

    @property
    def good(self) -> bool:
        """Nothing doubled, nothing lost, and as quick as promised."""
        quick = self.p50 <= P50_LIMIT and self.slowest <= MAX_LIMIT
        return not self.duplicates and not self.lost and quick

    def __str__(self) -> str:
        return (
            f"kills={self.kills} duplicates={self.duplicates} lost={len(self.lost)}"
            f" recovery_p50_s={self.p50:.2f} recovery_max_s={self.slowest:.2f}"
        )


def plan(kills: int, seed: int) -> list[Kill]:
    """Every place as often as every other, in an order that only the seed decides."""
    chance = random.Random(seed)
    places: list[Place] = []
    while len(places) < kills:
        places += chance.sample([*GATES, *STATEMENTS], len(GATES) + len(STATEMENTS))
    return [
        Kill(number, place, chance.choice(_AGENTS), chance.randrange(10) < _WHOLE_WORKERS)
        for number, place in enumerate(places[:kills], start=1)
    ]


class Soak:
    """Carries out a plan in a scene."""

    def __init__(self, scene: Scene, wire: Wire, say: Say):
        self._scene = scene
        self._fleet = Fleet(scene, wire, workers=2)
        self._say = say
        self._bystanders: list[str] = []

    def run(self, kills: list[Kill]) -> Verdict:
        """Every kill, then the accounts."""
        self._fleet.launch()
        verdict = Verdict()
        for kill in kills:
            # Each kill is measured by itself.
            self._fleet.await_whole()
            recovery = self._carry_out(kill)
            verdict.kills += 1
            if recovery is not None:
                verdict.recoveries.append(recovery)
            shown = "already over" if recovery is None else f"{recovery:.2f} s"
            self._say(f"{kill.number:4}/{len(kills)}  {kill!s:45} {shown}")
        self._settle_accounts(verdict, kills)
        return verdict

    def _carry_out(self, kill: Kill) -> float | None:
        """Seconds from the kill to the killed run's next node; None if it had nothing left to do."""
        scene, fleet, run_id = self._scene, self._fleet, kill.run_id
        self._bystanders.append(scene.begin("steps", run_id=f"bystander-{kill.number}"))
        victim = None
        with fleet.post(kill.place, run_id) as post:
            scene.begin(kill.agent, run_id=run_id)
            pid = post.await_arrival()
            over = scene.run(run_id).terminal
            killed_at = time.monotonic()
            if kill.whole:
                victim = fleet.kill_whole(pid)
            else:
                fleet.kill(pid)
        if victim is not None:
            victim.launch()
        return None if over else self._recovered_at(run_id, killed_at) - killed_at

    def _recovered_at(self, run_id: str, killed_at: float) -> float:
        deadline = killed_at + _END_WITHIN
        while time.monotonic() < deadline:
            if entered := [e.at for e in self._scene.trail.entries(run_id) if e.at > killed_at]:
                return entered[0]
            # Killed after its last node: nothing is entered any more, and being over is all there is.
            if self._scene.run(run_id).terminal:
                return time.monotonic()
            time.sleep(_LOOK_EVERY)
        return time.monotonic()

    def _settle_accounts(self, verdict: Verdict, kills: list[Kill]) -> None:
        """By the provider's log; of our own rows only that they say the same."""
        scene = self._scene
        deadline = time.monotonic() + _END_WITHIN
        for run_id in [*self._bystanders, *(kill.run_id for kill in kills)]:
            while not (run := scene.run(run_id)).terminal and time.monotonic() < deadline:
                time.sleep(_LOOK_EVERY)
            if run.status != "finished":
                verdict.lost.append(run_id)
        for kill in kills:
            acts, rows = scene.provider.acts_of(kill.run_id), scene.effects(kill.run_id)
            verdict.duplicates += max(0, len(acts) - 1) + max(0, len(rows) - 1)
            told = [row.idempotency_key for row in rows if row.done] == [act.key for act in acts]
            if kill.run_id not in verdict.lost and not (acts and told):
                verdict.lost.append(kill.run_id)
        for run_id in verdict.lost:
            self._say(f"lost: {run_id} {scene.run(run_id)} {scene.kinds(run_id)}")


def soak(scene: Scene, wire: Wire, kills: int, seed: int, say: Say) -> Verdict:
    """Carry out a seeded plan of `kills` kills."""
    return Soak(scene, wire, say).run(plan(kills, seed))


if __name__ == "__main__":
    sys.exit(run_soak(__doc__, soak, settings={}))
