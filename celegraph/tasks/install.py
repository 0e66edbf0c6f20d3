"""`celegraph.install(app, agents=...)`: the one line a host adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celery import Celery
from celery.local import Proxy

from celegraph.beat_schedule import DISPATCH, ESCALATE, PRUNE, RECONCILE, SWEEP, beat_schedule
from celegraph.errors import ConfigError, RunFailed
from celegraph.tasks import periodic
from celegraph.tasks.installation import Installation, installation, remember
from celegraph.tasks.ring import RESUME, START
from celegraph.tasks.start import StartRun
from celegraph.tasks.worker import DrainStep, connect_signals

# On our tasks, never in the host's configuration; and whatever that says, these hold for ours.
_OPTIONS: dict[str, Any] = {
    # This app's alone: a shared task would be registered with every other app of the process, too.
    "shared": False,
    "serializer": "json",
    "ignore_result": True,
    "store_errors_even_if_ignored": False,
    # A host's Task class may retry by itself, which would be a message with an ETA.
    "autoretry_for": (),
    "rate_limit": 0,
}
_RUN_OPTIONS: dict[str, Any] = _OPTIONS | {
    "acks_late": True,
    "reject_on_worker_lost": True,
    # Also an ETA message; deaths are counted in PostgreSQL.
    "retry_on_worker_lost": False,
    # What failed is on record; a message that is not acknowledged would only come again.
    "acks_on_failure": True,
    "acks_on_timeout": True,
    "throws": (RunFailed,),
    "max_retries": None,
    "typing": False,
}
# The clock's own tasks: lost ones come again, and Flower shows runs, not the clock.
_TICK_OPTIONS: dict[str, Any] = _OPTIONS | {"acks_late": False, "send_events": False}


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
    app.steps["worker"].add(DrainStep)

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

    # `bodies` brings LangGraph with it: imported by workers (before the fork, see `worker`), not by us.
    @app.task(name=START, base=base, bind=True, **_RUN_OPTIONS)
    def start_run(self: Any, *args: Any, **kwargs: Any) -> str:
        from celegraph.tasks import bodies

        return bodies.start_run_body(inst, args, kwargs, self.request.id)

    # A newer release beside this one may say more in its messages; what they ask for is the same.
    @app.task(name=RESUME, **_RUN_OPTIONS)
    def resume(run_id: str, **_: Any) -> str:
        from celegraph.tasks import bodies

        return bodies.run_doorbell(inst, run_id)

    @app.task(name=SWEEP, **_TICK_OPTIONS)
    def sweep_leases(**_: Any) -> None:
        periodic.sweep(inst)

    @app.task(name=DISPATCH, **_TICK_OPTIONS)
    def dispatch_outbox(**_: Any) -> None:
        from celegraph.tasks import dispatch

        dispatch.dispatch(inst)

    @app.task(name=RECONCILE, **_TICK_OPTIONS)
    def reconcile_effects(**_: Any) -> None:
        from celegraph.tasks import dispatch

        dispatch.reconcile(inst)

    @app.task(name=PRUNE, **_TICK_OPTIONS)
    def prune() -> None:
        periodic.prune(inst)

    @app.task(name=ESCALATE, **_TICK_OPTIONS)
    def escalate_approvals(**_: Any) -> None:
        periodic.escalate(inst)


def _start_run() -> Any:
    return installation().app.tasks[START]


# Resolved at every use: the current app's task, in whatever order app and modules were imported.
start_run: Any = Proxy(_start_run)
