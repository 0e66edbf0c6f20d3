"""The faults: each method strikes once and returns what ends it.

The seed's choice falls on what is there at that moment.  A fault that finds nothing to strike is none.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import redis
from psycopg import sql
from psycopg.rows import dict_row

from celegraph import cancel_run, decide, list_approvals, pause_run, resume_run
from celegraph.dev.server import LocalServer
from celegraph.errors import RunMoved
from celegraph.ledger.queries import parse
from celegraph.tasks.installation import installation
from celegraph.tasks.ring import ring
from tests.chaos.fleet import Fleet
from tests.chaos.people import REFUSED
from tests.chaos.schedule import Fault
from tests.support.process import Process, kill_and_await

T = TypeVar("T")
Heal = Callable[[], object]

Q = parse("chaos/faults", Path(__file__).with_name("faults.sql").read_text("utf-8"))
_MOST = 4


def _nothing() -> None:
    """There is nothing to end."""


class Faults:
    """Strikes a fleet; used by one thread."""

    def __init__(self, fleet: Fleet, admin_url: str, role: str):
        self._fleet = fleet
        self._scene = fleet.scene
        self._admin_url = admin_url
        self._role = role
        self._chance = random.Random(0)
        # What was paused and whose resumption no server has taken yet; also when the pause itself was
        # committed and its answer lost.
        self._paused: set[str] = set()

    def strike(self, fault: Fault) -> Heal:
        """Let it happen; returns what ends it after `fault.lasts` seconds."""
        self._chance = random.Random(fault.chance)
        strike: Callable[[], Heal | None] = getattr(self, fault.name)
        with contextlib.suppress(ProcessLookupError, *REFUSED):
            return strike() or _nothing
        return _nothing

    # -- processes -----------------------------------------------------------------------------------

    def kill_child(self) -> None:
        """SIGKILL to one pool child."""
        if (pid := self._child()) is not None:
            kill_and_await(pid)

    def kill_main(self) -> Heal:
        """SIGKILL to a worker's main process alone."""
        worker = self._worker()
        if worker.running:
            worker.kill_main()
        return lambda: self._fleet.bring_back(worker)

    def kill_group(self) -> Heal:
        """SIGKILL to a worker's whole process group."""
        return self._killed(self._worker())

    def kill_control(self) -> Heal:
        """SIGKILL to the control worker's whole process group."""
        return self._killed(self._fleet.control)

    def term_long(self) -> Heal:
        """SIGTERM, and all the time it wants."""
        return self._terminated()

    # The same signal; the schedule gives it a second, then comes SIGKILL.
    term_short = term_long

    def stop_child(self) -> Heal:
        """SIGSTOP to one pool child, perhaps longer than a lease."""
        pid = self._child()
        return self._stopped([] if pid is None else [pid])

    def stop_main(self) -> Heal:
        """SIGSTOP to a main process; its children go on."""
        worker = self._worker()
        return self._stopped([worker.pid] if worker.running else [])

    def stop_both(self) -> Heal:
        """SIGSTOP to a main process and its children."""
        return self._stopped(self._whole(self._worker()))

    def freeze_control(self) -> Heal:
        """SIGSTOP to the control worker and its child."""
        return self._stopped(self._whole(self._fleet.control))

    def beat_killed(self) -> Heal:
        """No beat for a while."""
        return self._killed(self._fleet.beat)

    def second_beat(self) -> Heal:
        """Two beats for a while."""
        self._fleet.bring_back(self._fleet.second_beat)
        return self._fleet.second_beat.kill

    # -- broker ----------------------------------------------------------------------------------------

    def broker_restarts(self) -> Heal | None:
        """An orderly end; it keeps what it has."""
        return self._ended(self._fleet.servers.valkey, LocalServer.stop)

    def broker_emptied(self) -> None:
        """FLUSHALL."""
        with self._broker() as client:
            client.flushall()

    def broker_frozen(self) -> Heal | None:
        """SIGSTOP: it takes connections and answers nothing."""
        valkey = self._fleet.servers.valkey
        if not self._fleet.is_up(valkey):
            return None
        pid = valkey.pid
        os.kill(pid, signal.SIGSTOP)

        def thaw() -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

        return thaw

    def broker_clients_killed(self) -> None:
        """Every client's connection is cut; unacknowledged messages come again at once."""
        with self._broker() as client:
            client.client_kill_filter(_type="normal")

    def doorbells_doubled(self) -> None:
        """Doorbells for runs in every state, and for one that nobody knows."""
        ring(installation(), [*self._some_runs("any"), "nobody"])

    def doorbells_late(self) -> Heal:
        """The same, when everything has moved on."""
        late = self._some_runs("any")
        return lambda: ring(installation(), late)

    # -- database ----------------------------------------------------------------------------------------

    def backends_ended(self) -> None:
        """pg_terminate_backend to some of our sessions, pens mostly."""
        with self._admin() as admin:
            pids = [row["pid"] for row in admin.execute(Q.sessions, {"role": self._role}).fetchall()]
            pids = self._chance.sample(pids, k=min(len(pids), self._chance.randint(0, 2)))
            pids += [row["pid"] for row in admin.execute(Q.pens_at_work).fetchall()][:1]
            for pid in pids:
                admin.execute(Q.end_session, {"pid": pid})

    def database_crashes(self) -> Heal | None:
        """SIGKILL to the postmaster; recovery from its log."""
        return self._ended(self._fleet.servers.postgres, LocalServer.kill)

    def connections_refused(self) -> Heal:
        """Too many connections: no new one for a while."""
        self._limit_connections(0)
        return self.lift_connection_limit

    def lift_connection_limit(self) -> None:
        """As many as anybody wants."""
        self._limit_connections(-1)

    # -- provider ------------------------------------------------------------------------------------------

    def provider_hangs(self) -> None:
        """It acts and does not answer, for some calls."""
        self._scene.provider.switch(acts_then_hangs=self._chance.randint(1, 3))

    def provider_resets(self) -> None:
        """It acts and resets the connection, for some calls."""
        self._scene.provider.switch(acts_then_resets=self._chance.randint(1, 3))

    def provider_errs(self) -> None:
        """500 without an act for some calls, with one for others."""
        self._scene.provider.switch(
            says_500=self._chance.randint(1, 2), acts_then_500=self._chance.randint(1, 2)
        )

    def provider_refuses(self) -> Heal:
        """Nobody listens."""
        self._scene.provider.switch(refuses_connect=True)
        return lambda: self._scene.provider.switch(refuses_connect=False)

    def provider_busy(self) -> Heal:
        """Answers late, and says 409 to the same key meanwhile."""
        self._scene.provider.switch(busy_409=self._chance.uniform(0.5, 4.0))
        return lambda: self._scene.provider.switch(busy_409=0.0)

    def provider_slow(self) -> Heal:
        """Thinks before it acts, perhaps until the caller has gone."""
        self._scene.provider.switch(slow=self._chance.uniform(0.3, 1.5))
        return lambda: self._scene.provider.switch(slow=0.0)

    # -- people ----------------------------------------------------------------------------------------------

    def decisions_race(self) -> None:
        """Two people click at once on everything that is open; one says yes, one says no."""
        asked = [a for a in list_approvals(limit=20) if a.kind != "doubt"]
        for question in self._chance.sample(asked, k=min(len(asked), _MOST)):
            _side_by_side(*(_deciding(question.approval_id, verb) for verb in ("approve", "reject")))

    def run_cancelled(self) -> None:
        """Somebody cancels a run."""
        for run_id in self._some_runs("live")[:1]:
            cancel_run(run_id, reason="chaos")

    def run_paused(self) -> Heal:
        """Somebody pauses runs, and resumes them."""
        for run_id in self._some_runs("resting"):
            self._paused.add(run_id)
            with contextlib.suppress(*REFUSED):
                pause_run(run_id, reason="chaos")
        return self.resume_paused

    def resume_paused(self) -> bool:
        """All that are still paused; one that cannot hear it now is told again.  True: none is left."""
        for run_id in sorted(self._paused):
            with contextlib.suppress(*REFUSED):
                with contextlib.suppress(RunMoved):  # resumed, or ended meanwhile
                    resume_run(run_id, by="chaos")
                self._paused.discard(run_id)
        return not self._paused

    # -- what they share -----------------------------------------------------------------------------

    def _children(self) -> list[int]:
        return [pid for w in self._fleet.workers if w.running for pid in w.children()]

    def _child(self) -> int | None:
        """One that has a run just now, if there is one: the others have nothing to lose."""
        children = self._children()
        with contextlib.suppress(*REFUSED), self._admin() as admin:
            owners = {int(row["pid"]) for row in admin.execute(Q.owners).fetchall()}
            children = [pid for pid in children if pid in owners] or children
        return self._chance.choice(children) if children else None

    def _worker(self) -> Process:
        return self._chance.choice(self._fleet.workers)

    def _whole(self, process: Process) -> list[int]:
        return [process.pid, *process.children()] if process.running else []

    def _killed(self, process: Process) -> Heal:
        process.kill()
        return lambda: self._fleet.bring_back(process)

    def _ended(self, server: LocalServer, end: Callable[[LocalServer], None]) -> Heal | None:
        if not self._fleet.is_up(server):
            return None
        os.kill(server.pid, signal.SIGCONT)  # stopped, it would never see the signal that ends it
        end(server)
        return lambda: self._fleet.start_server(server)

    def _terminated(self) -> Heal:
        worker = self._worker()
        if worker.running:
            worker.send(signal.SIGTERM)

        def end() -> None:
            worker.kill()
            self._fleet.bring_back(worker)

        return end

    def _stopped(self, pids: Sequence[int]) -> Heal:
        self._fleet.stop(list(pids))
        return lambda: self._fleet.go_on(list(pids))

    def _broker(self) -> redis.Redis:
        return redis.Redis.from_url(self._scene.broker_url, socket_timeout=0.5, socket_connect_timeout=0.5)

    def _admin(self) -> psycopg.Connection[dict[str, Any]]:
        return psycopg.connect(self._admin_url, autocommit=True, row_factory=dict_row, connect_timeout=2)

    def _limit_connections(self, most: int) -> None:
        role, limit = sql.Identifier(self._role), sql.Literal(most)
        with self._admin() as admin:
            admin.execute(sql.SQL("ALTER ROLE {} CONNECTION LIMIT {}").format(role, limit))

    def _some_runs(self, which: str) -> list[str]:
        with self._admin() as admin:
            rows = admin.execute(Q.some_runs, {"which": which}).fetchall()
        found = [str(row["run_id"]) for row in rows]
        return self._chance.sample(found, k=min(len(found), _MOST))


def _deciding(approval_id: str, verb: str) -> Callable[[], None]:
    def click() -> None:
        with contextlib.suppress(*REFUSED):
            decide(approval_id, verb, by=f"chaos-{verb}")

    return click


def _side_by_side(*jobs: Callable[[], None]) -> None:
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
