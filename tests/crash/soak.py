"""`make crash N=100 SEED=1`: seeded kills over every stage of a run, against real servers.

Two prefork workers, the control worker, beat and the provider, with celegraph's default settings and
databases that keep what they acknowledge.  The last line says what became of it; exit status 1 if an
act was doubled, a run lost, or recovery slower than promised.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from celegraph.agent.migrate import migrate
from celegraph.dev.servers import BROKER_VARIABLES, DATABASE_VARIABLES, LocalServers
from tests.crash.places import GATES, STATEMENTS, Place, standing_at
from tests.support.process import kill_and_await, parent_of
from tests.support.scene import Scene
from tests.support.waiting import eventually
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

    def __init__(self, scene: Scene, wire: Wire, say: Callable[[str], object]):
        self._scene = scene
        self._wire = wire
        self._say = say
        self._bystanders: list[str] = []
        env = scene.env(database_url=wire.url)
        self._workers = [
            scene.worker(name, queues=[scene.config.queue], env=env, start=False) for name in ("one", "two")
        ]

    def run(self, kills: list[Kill]) -> Verdict:
        """Every kill, then the accounts."""
        control = self._scene.worker(
            "control", queues=[self._scene.config.control_queue], concurrency=1, start=False
        )
        for worker in (*self._workers, control):
            worker.launch()
        self._scene.beat()
        control.await_ready()
        verdict = Verdict()
        for kill in kills:
            self._all_well()
            recovery = self._carry_out(kill)
            verdict.kills += 1
            if recovery is not None:
                verdict.recoveries.append(recovery)
            shown = "already over" if recovery is None else f"{recovery:.2f} s"
            self._say(f"{kill.number:4}/{len(kills)}  {kill!s:45} {shown}")
        self._settle_accounts(verdict, kills)
        return verdict

    def _all_well(self) -> None:
        """Both workers are up with all their children: each kill is measured by itself."""
        for worker in self._workers:
            worker.await_ready()
        eventually(lambda: all(len(worker.children()) == 2 for worker in self._workers))

    def _carry_out(self, kill: Kill) -> float | None:
        """Seconds from the kill to the killed run's next node; None if it had nothing left to do."""
        scene, run_id = self._scene, kill.run_id
        self._bystanders.append(scene.begin("steps", run_id=f"bystander-{kill.number}"))
        with standing_at(kill.place, scene, self._wire, kill.agent, run_id, self._workers) as pid:
            victim = next(w for w in self._workers if w.pid == parent_of(pid))
            over = scene.run(run_id).terminal
            killed_at = time.monotonic()
            if kill.whole:
                victim.kill_main()
            else:
                kill_and_await(pid)
        if kill.whole:
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


def soak(scene: Scene, wire: Wire, kills: int, seed: int, say: Callable[[str], object]) -> Verdict:
    """Carry out a seeded plan of `kills` kills."""
    return Soak(scene, wire, say).run(plan(kills, seed))


def _servers(stack: ExitStack) -> LocalServers:
    # Never the environment's: it might be somebody's real database.
    for name in (*DATABASE_VARIABLES, *BROKER_VARIABLES):
        os.environ.pop(name, None)
    return stack.enter_context(LocalServers(temporary=True))


def main() -> int:
    """Servers, soak, verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="celegraph-soak-")))
        servers = _servers(stack)
        migrate(servers.database_url)
        wire = stack.enter_context(Wire(servers.database_url))
        scene = stack.enter_context(Scene(servers.database_url, servers.broker_url, directory, settings={}))
        verdict = soak(scene, wire, told.kills, told.seed, say)
    say(str(verdict))
    return 0 if verdict.good else 1


if __name__ == "__main__":
    sys.exit(main())
