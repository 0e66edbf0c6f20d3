"""The doorbell: a message that carries a run_id and says "look".  It may be lost, doubled or late.

Publishing is bounded in time and never fails the caller: rows make a run due, the sweep rings again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from celery.app.task import Task
from kombu import Connection
from redis.backoff import NoBackoff
from redis.retry import Retry

from celegraph.ledger import runs
from celegraph.ledger.pool import ledger
from celegraph.ledger.sweep import wake
from celegraph.tasks import queues
from celegraph.tasks.broker import hang_up
from celegraph.tasks.installation import Installation

logger = logging.getLogger("celegraph")

START = "celegraph.start_run"
RESUME = "celegraph.resume"


# Seconds within which a connection that the other side has closed fails; a silent broker takes longer.
_HUNG_UP_WITHIN = 0.1


class _Publisher(threading.local):
    """This thread's broker connection, with time limits of its own (the host's may wait for ever)."""

    connection: Connection | None = None
    owner: tuple[int, Installation] | None = None


_publisher = _Publisher()


def _connection(inst: Installation) -> Connection:
    owner = (os.getpid(), inst)  # a child never uses its parent's socket, an app never another's broker
    if _publisher.connection is None or _publisher.owner != owner:
        queues.declare(inst)
        # A clone: TLS, credentials, sentinels and prefixes mean what they mean to the host.
        host = inst.app.connection_for_write()
        half = inst.config.publish_timeout.total_seconds() / 2
        _publisher.connection = host.clone(
            transport_options=bounded(host, half),
            connect_timeout=half,
            # Nobody here would send any while no run is started, and RabbitMQ would hang up.
            heartbeat=0,
        )
        _publisher.owner = owner
    return _publisher.connection


def bounded(host: Connection, half: float) -> dict[str, Any]:
    """The host's transport options with our limits.

    Two halves: connecting and the command may each hang on a broker that accepts but is silent.
    """
    options = dict(host.transport_options or {})
    options |= {
        "socket_timeout": half,
        "socket_connect_timeout": half,
        "retry_on_timeout": False,
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0,
        "interval_max": 0,
    }
    if host.transport.driver_type == "amqp":
        options |= {
            "read_timeout": half,
            "write_timeout": half,
            # Without it a doorbell that was written to a dead or blocked connection counts as rung.
            "confirm_publish": True,
        }
    if "master_name" in options:
        # They are asked one after the other, by clients that would each retry for seconds.
        share = half / max(1, len(host.alt or ()))
        options["sentinel_kwargs"] = {
            **(options.get("sentinel_kwargs") or {}),
            "socket_timeout": share,
            "socket_connect_timeout": share,
            "retry": Retry(NoBackoff(), 0),
        }
    return options


def _drop() -> None:
    connection, _publisher.connection = _publisher.connection, None
    if connection is not None:
        try:
            hang_up(connection)
        except Exception as error:
            logger.debug("broker connection did not close", extra={"error": type(error).__name__})


def publish(
    inst: Installation, task: Task[Any, Any], run_id: str, agent: str | None, reason: str, **options: Any
) -> bool:
    """Put one doorbell into the broker.  False when it did not take it within `publish_timeout`.

    `agent` and `reason` are for people: Flower and logs show them, nothing reads them.
    """
    shown = {"run_id": run_id} | ({"agent": agent} if agent else {}) | {"reason": reason}
    # What Flower, logs and events show: never anything of the customer.
    error = _send(inst, task, {"run_id": run_id}, kwargsrepr=repr(shown), **options)
    if error is not None:
        # Any failure is the same to us: the run is in PostgreSQL and the sweep will ring.
        logger.warning("doorbell not published", extra={"run_id": run_id, "error": type(error).__name__})
    return error is None


def tick(inst: Installation, name: str, *, expires: float) -> bool:
    """Ask a slot for a periodic duty.  False when the broker did not take it within `publish_timeout`."""
    return _send(inst, inst.app.tasks[name], {}, kwargsrepr="{}", expires=expires) is None


def _send(
    inst: Installation, task: Task[Any, Any], kwargs: Mapping[str, str], **options: Any
) -> Exception | None:
    """Publish to the run queue; the error when the broker did not take it."""
    used, began = _publisher.connection is not None, time.monotonic()
    error = _try_to_send(inst, task, kwargs, options)
    if error is not None and used and time.monotonic() - began < _HUNG_UP_WITHIN:
        # The broker was restarted, or hung up on an idle connection: that says nothing about now.
        error = _try_to_send(inst, task, kwargs, options)
    return error


def _try_to_send(
    inst: Installation, task: Task[Any, Any], kwargs: Mapping[str, str], options: Mapping[str, Any]
) -> Exception | None:
    try:
        connection = _connection(inst)
        with connection.Producer(auto_declare=False) as producer:
            # The base class's, because start_run's own apply_async admits.
            Task.apply_async(  # type: ignore[call-arg]  # celery-types does not know the two reprs
                task,
                (),
                dict(kwargs),
                producer=producer,
                retry=False,
                queue=inst.config.queue,
                argsrepr="()",
                serializer="json",
                ignore_result=True,
                **options,
            )
    except Exception as error:
        _drop()
        return error
    return None


def ring(inst: Installation, run_ids: Sequence[str], reason: str = "due") -> list[str]:
    """Ring these runs with fresh message ids; returns those the broker did not take.

    After the first failure the rest is not tried: each would cost its time limit.  With
    `task_always_eager` there is no broker: the runs are driven here and now.
    """
    if inst.app.conf.task_always_eager:
        from celegraph.tasks.eager import drive_inline

        for run_id in run_ids:
            drive_inline(inst, run_id)
        return []
    task = inst.app.tasks.get(RESUME)
    if task is None:
        return list(run_ids)  # an installation that knows only the database
    agents = _agents(inst, run_ids)
    for i, run_id in enumerate(run_ids):
        if not publish(inst, task, run_id, agents.get(run_id), reason):
            return list(run_ids[i:])
    return []


def _agents(inst: Installation, run_ids: Sequence[str]) -> Mapping[str, str]:
    try:
        with ledger(inst.config) as conn:
            return runs.agents_of(conn, run_ids)
    except Exception as error:
        # Only for people to read; the doorbell itself needs no database.
        logger.debug("agents not known", extra={"error": type(error).__name__})
        return {}


def ring_ready(inst: Installation, run_ids: Sequence[str], reason: str = "due") -> None:
    """Ring runs that have just been made ready, and book it; what the broker did not take the sweep rings."""
    missed = set(ring(inst, run_ids, reason))
    taken = [run_id for run_id in run_ids if run_id not in missed]
    if taken:
        with ledger(inst.config) as conn:
            runs.rung(conn, taken)


def wake_and_ring(inst: Installation, run_id: str, reason: str = "decided") -> None:
    """After a decision or an answer is committed: make its run ready and ring."""

    def wake_it() -> bool:
        with ledger(inst.config) as conn:
            return wake(conn, run_id)

    _after_commit(inst, run_id, reason, wake_it)


def ring_after_commit(inst: Installation, run_id: str, reason: str) -> None:
    """After somebody's change that made the run ready is committed."""
    _after_commit(inst, run_id, reason, lambda: True)


def _after_commit(inst: Installation, run_id: str, reason: str, due: Callable[[], bool]) -> None:
    try:
        if due():
            ring_ready(inst, [run_id], reason)
    except Exception as error:
        # The change is committed; failing the caller now would say that it is not.  The sweep rings.
        logger.warning("run not woken at once", extra={"run_id": run_id, "error": type(error).__name__})


def depth(inst: Installation) -> int | None:
    """How many messages lie in the run queue; None when the broker cannot tell just now."""
    channel: Any = None
    try:
        channel = _connection(inst).default_channel
        return int(channel.queue_declare(inst.config.queue, passive=True).message_count)
    except Exception as error:
        if str(getattr(error, "reply_code", "")) == "404":
            # An empty list does not exist in Redis.  RabbitMQ closes the channel with its answer.
            if not getattr(channel, "is_open", True):
                _drop()
            return 0
        # No broker just now: then nobody should ring more.
        logger.debug("queue depth unknown", extra={"error": type(error).__name__})
        _drop()
        return None
