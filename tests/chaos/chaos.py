"""One chaos: a plan carried out in a scene, the quiet afterwards, and the verdict."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from celegraph.dev.servers import LocalServers
from tests.chaos.faults import Faults
from tests.chaos.fleet import Fleet
from tests.chaos.oracle import Verdict, Violation, judge
from tests.chaos.people import REFUSED, Person, Regularly, Traffic, Webhooks, settled
from tests.chaos.queue_watch import QueueWatch
from tests.chaos.role import ROLE, prepare
from tests.chaos.schedule import Fault, plan
from tests.chaos.shapes import AGENTS
from tests.support.scene import Scene
from tests.support.waiting import eventually

# Short leases, so that what is stopped for seconds is taken for hung; a doubt is answered after four.
SETTINGS = {
    "lease": "4s",
    "beat_every": "1s",
    "hang_after": "8s",
    "call_window": "1s",
    "max_crashes": "5",
}
# Messages that a dead worker had taken come again in the middle of it all.
CELERY = {
    "broker_transport_options": {
        "visibility_timeout": 8,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    }
}
_SETTLED_WITHIN = 180.0
_MOST_TRACES = 5

Say = Callable[[str], object]


class Chaos:
    """Carries out a plan; everything it starts ends with the block that made the scene."""

    def __init__(
        self, scene: Scene, servers: LocalServers, admin_url: str, say: Say, *, workers: int, live: int
    ):
        self._scene = scene
        self._say = say
        self._fleet = Fleet(scene, servers, workers=workers)
        self._faults = Faults(self._fleet, admin_url, ROLE)
        self._live = live

    def run(self, faults: Sequence[Fault], seed: int) -> Verdict:
        """Strike, heal, wait, judge."""
        traffic = Traffic(self._scene, seed, live=self._live)
        person = Person(self._scene, seed)
        webhooks = Webhooks(self._scene, seed)
        watch = QueueWatch(self._scene)
        try:
            self._fleet.launch()
            with ExitStack() as outside:
                outside.enter_context(Regularly("person", person.work))
                outside.enter_context(Regularly("queue watch", watch.look))
                outside.enter_context(Regularly("webhooks", webhooks.work))
                with Regularly("traffic", traffic.work):
                    self._strike(faults)
                self._say("faults are over; waiting until everything rests")
                self._heal()
                rests = settled(self._scene, person, within=_SETTLED_WITHIN)
            self._say(f"rests={rests} queue at its worst: {watch.worst}")
            self._survey()
            verdict = Verdict(seed, len(faults), len(traffic.started))
            verdict.violations += judge(self._scene, traffic.started)
            if watch.worst.grows:
                verdict.violations.append(Violation("stuck", "queue grows", "-", str(watch.worst)))
        finally:
            self._fleet.end()
        self._tell(verdict)
        return verdict

    def _strike(self, faults: Sequence[Fault]) -> None:
        """Every fault at its time, and its end at its own; they overlap."""
        order = itertools.count()
        begun = time.monotonic()
        due: list[tuple[float, int, Callable[[], object]]] = []

        def striking(fault: Fault) -> Callable[[], object]:
            def strike() -> None:
                self._say(f"{time.monotonic() - begun:7.2f} {fault.name} for {fault.lasts:.1f} s")
                end = self._faults.strike(fault)
                again = time.monotonic() - begun + fault.lasts
                heapq.heappush(due, (again, next(order), end))

            return strike

        for fault in faults:
            heapq.heappush(due, (fault.at, next(order), striking(fault)))
        while due:
            at, _, act = heapq.heappop(due)
            # The schedule is the schedule: nothing is awaited here but its own times.
            time.sleep(max(0.0, at - (time.monotonic() - begun)))
            try:
                act()
            except REFUSED:
                # An end that a server could not hear just now; ends may be said twice.
                heapq.heappush(due, (at + 1.0, next(order), act))

    def _heal(self) -> None:
        self._fleet.heal()
        self._faults.lift_connection_limit()
        self._scene.provider.switch(
            refuses_connect=False,
            busy_409=0.0,
            slow=0.0,
            says_500=0,
            acts_then_500=0,
            acts_then_hangs=0,
            acts_then_resets=0,
        )
        self._scene.reconnect()
        eventually(self._faults.resume_paused)

    def _survey(self) -> None:
        """What the runs have gone through; a chaos in which nothing happened proves nothing."""
        for what in ("status FROM runs", "kind FROM run_events"):
            query = f"SELECT count(*) AS n, {what} GROUP BY 2 ORDER BY 1 DESC"
            rows = self._scene.conn.execute(query.encode()).fetchall()
            self._say(", ".join(f"{row['n']} {row.get('status') or row.get('kind')}" for row in rows))

    def _tell(self, verdict: Verdict) -> None:
        for violation in verdict.violations:
            self._say(str(violation))
        for run_id in dict.fromkeys(v.run_id for v in verdict.violations[:_MOST_TRACES]):
            self._trace(run_id)

    def _trace(self, run_id: str) -> None:
        scene = self._scene
        rows = scene.conn.execute("SELECT * FROM runs WHERE run_id = %s", (run_id,)).fetchall()
        self._say(f"--- trace of {run_id}: {rows}")
        for event in scene.events(run_id):
            self._say(f"  {event.at:%H:%M:%S.%f} {event.epoch} {event.kind} {dict(event.data)}")
        for row in scene.effects(run_id):
            self._say(f"  {row}")
        for act in scene.provider.acts_of(run_id):
            self._say(f"  {act}")


def chaos(
    directory: Path,
    say: Say,
    *,
    seed: int,
    seconds: float,
    workers: int = 2,
    live: int = 16,
    fsync: bool = True,
) -> Verdict:
    """A seeded chaos on servers of its own; `directory` keeps the logs."""
    with ExitStack() as stack:
        servers = stack.enter_context(LocalServers(temporary=True, fsync=fsync))
        url, admin_url = prepare(servers.database_url)
        scene = Scene(url, servers.broker_url, directory, settings=SETTINGS, agents=AGENTS, celery=CELERY)
        stack.enter_context(scene)
        doing = Chaos(scene, servers, admin_url, say, workers=workers, live=live)
        return doing.run(plan(seed, seconds), seed)
