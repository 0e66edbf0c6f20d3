"""What happens when a worker starts and stops: checks first, graphs before the fork, drain at t=0."""

from __future__ import annotations

import logging
import threading
from importlib import import_module
from typing import Any

from celery import signals

from celegraph.errors import BrokerUnsupported
from celegraph.ledger.connect import ledger
from celegraph.ledger.sweep import last_tick
from celegraph.tasks import drain, periodic
from celegraph.tasks.broker import check_broker
from celegraph.tasks.installation import Installation, find
from celegraph.tasks.quiet import quieten

logger = logging.getLogger("celegraph")

# Seconds.  Beat's ticks may starve behind long runs (worker -B on a laptop); then the workers' main
# processes sweep themselves.
_SWEEP_IF_OLDER = 10.0
_LOOK_EVERY = 5.0


def connect_signals() -> None:
    """Idempotent; each handler asks whether the worker's app has celegraph."""
    for signal, handler in (
        (signals.celeryd_after_setup, _after_setup),
        (signals.worker_init, _init),
        (signals.worker_ready, _ready),
        (signals.worker_shutting_down, _shutting_down),
        (signals.worker_shutdown, _shutdown),
    ):
        signal.connect(handler, weak=False, dispatch_uid=f"celegraph.{handler.__name__}")


def _after_setup(sender: Any, instance: Any, **_: Any) -> None:
    """Before the queues are consumed: refuse pools that cannot carry runs, add our two queues."""
    inst = find(instance.app)
    if inst is None:
        return
    pool = getattr(instance.pool_cls, "__module__", str(instance.pool_cls))
    if "gevent" in pool or "eventlet" in pool:
        raise BrokerUnsupported(
            "celegraph does not run on the gevent and eventlet pools (psycopg's connections and the run's"
            " event loop would share one thread); start the worker with --pool prefork, threads or solo"
        )
    # Only without -Q, and never through conf.task_queues, which would take the host's own queue away.
    if not instance.app.amqp.queues._consume_from:
        for name in (inst.config.queue, inst.config.control_queue):
            instance.app.amqp.queues.select_add(name)


def _init(sender: Any, **_: Any) -> None:
    """In the main process, before the pool forks."""
    inst = find(sender.app)
    if inst is None:
        return
    quieten()
    check_broker(inst.app.connection_for_read().as_uri(include_password=True))
    with ledger(inst.config):
        pass  # the first use refuses a pooler and a foreign schema
    # Over a second of imports, paid once here instead of by every pool child.
    import_module("celegraph.tasks.bodies")
    for name in inst.agents:
        inst.graph(name)
    drain.prepare()


def _ready(sender: Any, **_: Any) -> None:
    inst = find(sender.app)
    if inst is None:
        return
    drain.wrap_handlers()
    threading.Thread(
        target=_sweep_when_nobody_does, args=(inst,), name="celegraph-sweep", daemon=True
    ).start()


def _sweep_when_nobody_does(inst: Installation) -> None:
    """Once now (this worker may bring the code a run waits for), then whenever the last sweep is old."""
    started = True
    while not drain.requested():
        try:
            with ledger(inst.config) as conn:
                tick = last_tick(conn, "sweep")
            if started or tick is None or tick.age_s > _SWEEP_IF_OLDER:
                periodic.sweep(inst, started=started)
                periodic.escalate(inst)
            started = False
        except Exception as error:
            logger.warning("sweep failed", extra={"error": repr(error)})
        _pause.wait(_LOOK_EVERY)


_pause = threading.Event()


def _shutting_down(**_: Any) -> None:
    drain.raise_flag()


def _shutdown(**_: Any) -> None:
    _pause.set()
    drain.dispose()
