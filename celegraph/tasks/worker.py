"""What happens when a worker starts and stops: checks first, graphs before the fork, drain at t=0."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from celery import bootsteps, signals
from celery.utils.text import str_to_list

from celegraph.beat_schedule import DISPATCH, RECONCILE, RECONCILE_EVERY
from celegraph.errors import CelegraphError
from celegraph.ledger.db_errors import in_log
from celegraph.ledger.pool import ledger
from celegraph.ledger.sweep import last_tick
from celegraph.tasks import drain, periodic, queues, revoke, turns, watchdog
from celegraph.tasks.fitness import check_worker
from celegraph.tasks.installation import Installation, find
from celegraph.tasks.quiet import quieten
from celegraph.tasks.ring import tick
from celegraph.tasks.stream.server import server_of
from celegraph.tasks.telling import finish_telling

logger = logging.getLogger("celegraph")

# Seconds.  Beat's ticks may starve behind long runs (worker -B on a laptop); then the workers' main
# processes sweep themselves.
_SWEEP_IF_OLDER = 10.0
_LOOK_EVERY = 5.0
# Seconds.
_LAST_WORDS_WITHIN = 1.0
# Duties that call the host's functions: never here, where a slow one would hold up the sweep, so a slot is
# asked for them.  Also where beat's ticks arrive expired because two hosts' clocks differ.
_ASK_IF_OLDER = {"dispatch": (DISPATCH, 10.0), "reconcile": (RECONCILE, 3 * RECONCILE_EVERY)}
_ASKED_FOR = 60.0


@dataclass
class _CommandLine:
    """What this process was told about queues (-Q, -X); workers inside a test have no command line."""

    chosen: bool = False
    excluded: tuple[str, ...] = ()


_command_line = _CommandLine()


def connect_signals() -> None:
    """Idempotent; each handler asks whether the worker's app has celegraph."""
    for signal, handler in (
        (signals.celeryd_init, _read_command_line),
        (signals.worker_init, _init),
        (signals.worker_process_init, watchdog.in_child),
        (signals.worker_ready, _ready),
        (signals.worker_shutting_down, _shutting_down),
        (signals.worker_shutdown, _shutdown),
        (signals.worker_process_shutdown, _process_shutdown),
        (signals.beat_init, _beat_init),
        (signals.beat_embedded_init, _beat_init),
        (signals.task_revoked, revoke.revoked),
    ):
        signal.connect(handler, weak=False, dispatch_uid=f"celegraph.{handler.__name__}")


def _read_command_line(options: Mapping[str, Any], **_: Any) -> None:
    _command_line.chosen = bool(options.get("queues"))
    _command_line.excluded = tuple(str_to_list(options.get("exclude_queues") or ""))


def _init(sender: Any, **_: Any) -> None:
    """In the main process, before the pool forks."""
    inst = find(sender.app)
    if inst is None:
        return
    quieten()
    # Over a second of imports, paid once here instead of by every pool child.
    import_module("celegraph.tasks.bodies")
    try:
        check_worker(inst, sender.pool_cls)
    except CelegraphError as error:
        # Celery logs what a signal handler raises and starts all the same; only an exit stops it.
        raise SystemExit(f"celegraph: {error}") from error
    _warn_of_silence(inst)
    if _command_line.chosen:
        queues.declare(inst)
    else:
        queues.consume(inst, without=_command_line.excluded)
    drain.prepare()
    turns.prepare(sender.concurrency)
    watchdog.in_main()


def _warn_of_silence(inst: Installation) -> None:
    talking = sorted(name for name, agent in inst.agents.items() if agent.streamed)
    if talking and server_of(inst) is None:
        logger.warning(
            "nothing carries what %s would say (stream=): the broker is no Redis, set stream_url",
            ", ".join(talking),
        )


def _beat_init(sender: Any, **_: Any) -> None:
    inst = find(sender.app)
    if inst is not None:
        queues.declare(inst)


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
                last = last_tick(conn, "sweep")
            if started or last is None or last.age_s > _SWEEP_IF_OLDER:
                periodic.sweep(inst, started=started)
                periodic.escalate(inst)
            _ask_when_nobody_ticks(inst)
            started = False
        except Exception as error:
            logger.warning("sweep failed", extra={"error": in_log(error)})
        _pause.wait(_LOOK_EVERY)


def _ask_when_nobody_ticks(inst: Installation) -> None:
    for duty, (task, late) in _ASK_IF_OLDER.items():
        with ledger(inst.config) as conn:
            last = last_tick(conn, duty)
        if last is None or last.age_s > late:
            tick(inst, task, expires=_ASKED_FOR)


_pause = threading.Event()


def _shutting_down(**_: Any) -> None:
    drain.raise_flag()


class DrainStep(bootsteps.StartStopStep):
    """Raises the flag however the worker ends: also by `celery control shutdown`, or when it fails
    itself; of those no signal tells."""

    def close(self, parent: object) -> None:
        """Called before anything waits for running tasks."""
        drain.raise_flag()


def _shutdown(**_: Any) -> None:
    _pause.set()
    _last_words()
    drain.dispose()
    finish_telling()


def _last_words() -> None:
    """What this process's runs have said and is not yet sent."""
    # Late: it brings LangGraph with it, which a process without it has no chunks to send for.
    publisher = sys.modules.get("celegraph.tasks.stream.publisher")
    if publisher is not None:
        publisher.flush_all(_LAST_WORDS_WITHIN)


def _process_shutdown(**_: Any) -> None:
    """In a pool child that is asked to stop."""
    _last_words()
    finish_telling()
