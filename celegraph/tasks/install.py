"""`celegraph.install(app, agents=...)`: the one line a host adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celery import Celery
from celery.local import Proxy

from celegraph.beat_schedule import beat_schedule
from celegraph.errors import ConfigError, RunFailed
from celegraph.tasks import periodic
from celegraph.tasks.installation import Installation, installation, remember
from celegraph.tasks.ring import RESUME, START
from celegraph.tasks.start import StartRun
from celegraph.tasks.worker import connect_signals

# On our tasks, never in the host's configuration.
_RUN_OPTIONS: dict[str, Any] = {
    "acks_late": True,
    "reject_on_worker_lost": True,
    "ignore_result": True,
    "serializer": "json",
    "throws": (RunFailed,),
    "max_retries": None,
    "typing": False,
}
# The clock's own tasks: lost ones come again, and Flower shows runs, not the clock.
_TICK_OPTIONS: dict[str, Any] = {
    "acks_late": False,
    "ignore_result": True,
    "serializer": "json",
    "send_events": False,
}


def install(app: Celery, *, agents: Mapping[str, object]) -> None:
    """Give `app` durable agents: name -> "package.module:graph" or `Agent(...)`.

    Adds celegraph's tasks, its two queues and its beat entries; nothing of the host's is changed.
    Configuration is read from `app.conf.celegraph` (Django: CELERY_CELEGRAPH) when first needed.
    """
    if not isinstance(agents, Mapping) or not agents:
        raise ConfigError('install(app, agents={"name": "package.module:graph"}) needs at least one agent')
    inst = fit(app, agents)
    remember(inst)
    connect_signals()

    def add_schedule(sender: Celery, **_: Any) -> None:
        for name, entry in beat_schedule(inst.config).items():
            sender.conf.beat_schedule.setdefault(name, entry)

    app.on_after_finalize.connect(add_schedule, weak=False)


def fit(app: Celery, agents: Mapping[str, object]) -> Installation:
    """Give `app` agents and tasks, and nothing else: nobody finds it who does not hold the result."""
    inst = Installation(app, agents)
    _add_tasks(app, inst)
    return inst


def _add_tasks(app: Celery, inst: Installation) -> None:
    # From the host's own Task class, which may be Django's or one with the host's own hooks.
    base: Any = type("StartRunTask", (StartRun, app.Task), {"abstract": True})

    # shared=False: Celery would give every task to all other apps of the process as well, and a run of
    # theirs would be driven with our agents.
    # `bodies` brings LangGraph with it: imported by workers (before the fork, see `worker`), not by us.
    @app.task(name=START, base=base, bind=True, shared=False, **_RUN_OPTIONS)
    def start_run(self: Any, **kwargs: Any) -> str:
        from celegraph.tasks import bodies

        return bodies.start_run_body(inst, kwargs, self.request.id)

    @app.task(name=RESUME, shared=False, **_RUN_OPTIONS)
    def resume(run_id: str) -> str:
        from celegraph.tasks import bodies

        return bodies.run_doorbell(inst, run_id)

    @app.task(name="celegraph.sweep_leases", shared=False, **_TICK_OPTIONS)
    def sweep_leases() -> None:
        periodic.sweep(inst)

    @app.task(name="celegraph.escalate_approvals", shared=False, **_TICK_OPTIONS)
    def escalate_approvals() -> None:
        periodic.escalate(inst)


def _start_run() -> Any:
    return installation().app.tasks[START]


# Resolved at every use: the current app's task, in whatever order app and modules were imported.
start_run: Any = Proxy(_start_run)
