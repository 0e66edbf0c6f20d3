"""`make recovery`: from the SIGKILL of a whole worker to the next node of its run, with default settings.

Two workers, the control worker and beat, as in production.  A run stands in a node; the process group of
its worker is killed; the other worker enters the next node or the same one again.  Both instants are the
machine's monotonic clock.  Exit status 1 above the median or the maximum that docs/guarantees.md promises.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from celegraph.agent.migrate import migrate
from tests.crash.fleet import Fleet, Say, own_servers, say
from tests.support.scene import Scene
from tests.support.waiting import eventually

MEDIAN_LIMIT = 1.5
MAX_LIMIT = 4.0
_NODES = ("one", "two", "three", "four")
_RECOVERS_WITHIN = 60.0


def measure(scene: Scene, kills: int, seed: int, say: Say) -> list[float]:
    """Seconds from each kill to the next node; every run has finished when this returns."""
    fleet = Fleet(scene, None, workers=2)
    fleet.launch()
    chance = random.Random(seed)
    taken = []
    for number in range(1, kills + 1):
        # In production the other worker is there, and the clock is at any point of its beat.
        fleet.await_whole()
        time.sleep(chance.random())
        taken.append(_kill_in(scene, fleet, chance.choice(_NODES), f"recovery-{number}"))
        say(f"{number:4}/{kills}  {taken[-1]:.2f} s")
    return taken


def _kill_in(scene: Scene, fleet: Fleet, node: str, run_id: str) -> float:
    scene.gates.close(node, run_id)
    scene.begin("steps", run_id=run_id)
    pid = scene.gates.await_arrival(node, run_id, within=60).pid
    killed_at = time.monotonic()
    victim = fleet.kill_group(pid)
    scene.gates.open(node, run_id)
    entered = eventually(
        lambda: [e.at for e in scene.trail.entries(run_id) if e.at > killed_at], within=_RECOVERS_WITHIN
    )
    victim.launch()
    scene.await_status(run_id, "finished", within=_RECOVERS_WITHIN)
    return entered[0] - killed_at


def told(taken: Sequence[float]) -> str:
    """The last line."""
    return f"recovery kills={len(taken)} median_s={statistics.median(taken):.2f} max_s={max(taken):.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="celegraph-recovery-")))
        servers = own_servers(stack)
        migrate(servers.database_url)
        scene = stack.enter_context(Scene(servers.database_url, servers.broker_url, directory, settings={}))
        taken = measure(scene, options.kills, options.seed, say)
    say(told(taken))
    return 0 if statistics.median(taken) <= MEDIAN_LIMIT and max(taken) <= MAX_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
