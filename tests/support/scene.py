"""A scene: everything one test with real processes needs, in one place, gone afterwards."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from celery import Celery

from celegraph import start_run
from celegraph.config import Config, load_config
from celegraph.ledger import approvals, effects, runs
from celegraph.ledger.approvals import Approval
from celegraph.ledger.connect import Conn, connect
from celegraph.ledger.effect_row import Effect
from celegraph.ledger.runs import Event, Run
from tests.support.app import AGENTS, CELERY, make_app
from tests.support.caller import Caller
from tests.support.gates import DIRECTORY, Gates
from tests.support.graphs import PROVIDER
from tests.support.process import ROOT
from tests.support.provider import FakeProvider
from tests.support.trail import Trail
from tests.support.waiting import eventually
from tests.support.workers import Beat, Worker

# A doubt is answered two seconds after its claim instead of after a minute; the rest is the default.
QUICK_DOUBT = {"call_window": "1s"}


class Scene:
    """Servers' URLs, provider, gates, trail, and a web process's view of the runs (`app`, `run`, ...).

    `settings` (celegraph's), `agents` (name -> import path, beside those of `graphs`) and `celery`
    (Celery's settings) are for the workers and for this process alike.  Processes started by `worker`
    and `beat` end with the block.
    """

    def __init__(
        self,
        database_url: str,
        broker_url: str,
        directory: Path,
        *,
        settings: Mapping[str, str] | None = None,
        agents: Mapping[str, str] | None = None,
        celery: Mapping[str, object] | None = None,
    ):
        self.database_url = database_url
        self.broker_url = broker_url
        self.directory = directory
        self.settings = dict(QUICK_DOUBT if settings is None else settings)
        self.gates = Gates(directory)
        self.trail = Trail(directory)
        self.provider = FakeProvider(directory, _environment())
        self.agents = dict(agents or {})
        self.celery = dict(celery or {})
        self.app: Celery = make_app(
            broker_url,
            settings={"database_url": database_url, **self.settings},
            agents=self.agents,
            celery=self.celery,
        )
        self.config: Config = load_config({"database_url": database_url, **self.settings})
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.app.set_current()
            stack.callback(self.app.close)
            stack.enter_context(self.provider)
            self._stack = stack
            self.reconnect()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.gates.open_all()
        self._stack.close()

    def reconnect(self) -> None:
        """Another connection of this process's own, after the database was away."""
        self._conn = self._stack.enter_context(connect(self.config, application="test"))

    def configure(self, **settings: str) -> None:
        """Other settings for everything that starts from now on, and for this process."""
        self.settings |= settings
        self.app.conf.celegraph = {"database_url": self.database_url, **self.settings}
        self.config = load_config(self.app.conf.celegraph)

    def env(self, *, database_url: str | None = None, **settings: str) -> dict[str, str]:
        """The environment of a process of this scene; `settings` are celegraph's own for this one."""
        named = {f"CELEGRAPH_{key.upper()}": value for key, value in (self.settings | settings).items()}
        return {
            **_environment(),
            **named,
            "CELEGRAPH_DATABASE_URL": database_url or self.database_url,
            "CELERY_BROKER_URL": self.broker_url,
            DIRECTORY: str(self.directory),
            PROVIDER: self.provider.url,
            AGENTS: json.dumps(self.agents),
            CELERY: json.dumps(self.celery),
        }

    def worker(
        self, name: str, *, start: bool = True, env: Mapping[str, str] | None = None, **how: Any
    ) -> Worker:
        """A started worker (`how`: see `Worker`), or one to launch later."""
        worker = Worker(name, directory=self.directory, env=self.env() if env is None else env, **how)
        self._stack.callback(worker.kill)
        if start:
            worker.start()
        return worker

    def control(self, name: str = "control", *, start: bool = True, **how: Any) -> Worker:
        """The worker of the control queue, with beat inside."""
        queues = [self.config.control_queue]
        return self.worker(name, start=start, queues=queues, concurrency=1, beat=True, **how)

    def beat(self, name: str = "beat", *, env: Mapping[str, str] | None = None) -> Beat:
        """A started beat of its own."""
        beat = Beat(name, directory=self.directory, env=self.env() if env is None else env)
        self._stack.callback(beat.kill)
        beat.start()
        return beat

    def caller(self, *words: str, env: Mapping[str, str] | None = None) -> Caller:
        """A web process that is doing it (see `Caller`)."""
        caller = Caller(*words, directory=self.directory, env=self.env() if env is None else env)
        self._stack.callback(caller.kill)
        caller.launch()
        return caller

    # -- the web process's side --------------------------------------------------------------------

    def begin(self, agent: str = "retried", *, run_id: str | None = None, cents: int = 1999) -> str:
        """Start a run as a web process does; returns its id."""
        run_id = run_id or f"{agent}-{uuid.uuid4().hex[:8]}"
        start_run.delay(agent, {"cents": cents}, run_id=run_id)
        return run_id

    def run(self, run_id: str) -> Run:
        """The run as it is now."""
        return runs.get_run(self._conn, run_id)

    def await_status(self, run_id: str, *statuses: str, within: float = 30.0) -> Run:
        """The run once it has one of these statuses; AssertionError with its trace if it never does."""
        try:
            eventually(lambda: self.run(run_id).status in statuses, within=within)
        except AssertionError:
            told = "\n".join(f"{e.at:%M:%S.%f} {e.epoch} {e.kind} {e.data}" for e in self.events(run_id))
            raise AssertionError(f"{self.run(run_id)}\n{told}\ntrail {self.trail.steps(run_id)}") from None
        return self.run(run_id)

    def events(self, run_id: str) -> list[Event]:
        """Everything that happened to the run."""
        return runs.events(self._conn, run_id)

    def kinds(self, run_id: str) -> list[str]:
        """The kinds of its events, in order."""
        return [event.kind for event in self.events(run_id)]

    def effects(self, run_id: str) -> list[Effect]:
        """The run's ledger rows."""
        return effects.effects_of(self._conn, run_id)

    def question(self, run_id: str, within: float = 30.0) -> Approval:
        """The run's open question, once there is one."""
        return eventually(lambda: approvals.list_approvals(self._conn, run_id=run_id), within=within)[0]

    def owner_pid(self, run_id: str) -> int:
        """The process that drives the run now, once there is one."""
        worker_id = eventually(lambda: self.run(run_id).worker_id)
        assert worker_id is not None
        return int(worker_id.split(":")[1])

    @property
    def conn(self) -> Conn:
        """This process's connection to the ledger."""
        return self._conn


def _environment() -> dict[str, str]:
    """Ours without what would point a process of the tests elsewhere."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CELEGRAPH_", "CELERY_", "DJANGO_"))}
    kept.pop("DATABASE_URL", None)
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
