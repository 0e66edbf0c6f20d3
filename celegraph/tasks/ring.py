"""The doorbell: a message that carries a run_id and says "look".  It may be lost, doubled or late.

Publishing is bounded in time and never fails the caller: rows make a run due, the sweep rings again.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from typing import Any

from celery.app.task import Task
from kombu import Connection

from celegraph.tasks.installation import Installation

logger = logging.getLogger("celegraph")

START = "celegraph.start_run"
RESUME = "celegraph.resume"


class _Publisher(threading.local):
    """This thread's broker connection, with time limits of its own (the host's may wait for ever)."""

    connection: Connection | None = None
    pid: int = 0
    inst: Installation | None = None


_publisher = _Publisher()


def _connection(inst: Installation) -> Connection:
    if _publisher.inst is not inst or _publisher.pid != os.getpid():
        _drop()  # another app's broker, or the parent's socket, which is left to the parent
    if _publisher.connection is None:
        limit = inst.config.publish_timeout.total_seconds()
        host = inst.app.connection_for_write()
        options = dict(host.transport_options or {})
        # Two halves: connecting and the command may each hang on a broker that accepts but is silent.
        options |= {
            "socket_timeout": limit / 2,
            "socket_connect_timeout": limit / 2,
            "retry_on_timeout": False,
            "max_retries": 1,
            "interval_start": 0,
            "interval_step": 0,
            "interval_max": 0,
        }
        _publisher.connection = host.clone(transport_options=options, connect_timeout=limit / 2)
        _publisher.pid, _publisher.inst = os.getpid(), inst
    return _publisher.connection


def _drop() -> None:
    connection, _publisher.connection = _publisher.connection, None
    if connection is not None and _publisher.pid == os.getpid():
        try:
            connection.release()
        except Exception as error:
            logger.debug("broker connection did not close", extra={"error": repr(error)})


def publish(inst: Installation, task: Task[Any, Any], run_id: str, agent: str | None, **options: Any) -> bool:
    """Put one doorbell into the broker.  False when it did not take it within `publish_timeout`."""
    shown = {"run_id": run_id} | ({"agent": agent} if agent else {})
    try:
        connection = _connection(inst)
        with connection.Producer(auto_declare=False) as producer:
            # The base class's, because start_run's own apply_async admits.
            Task.apply_async(  # type: ignore[call-arg]  # celery-types does not know the two reprs
                task,
                (),
                {"run_id": run_id},
                producer=producer,
                retry=False,
                queue=inst.config.queue,
                # What Flower, logs and events show: never anything of the customer.
                argsrepr="()",
                kwargsrepr=repr(shown),
                serializer="json",
                ignore_result=True,
                **options,
            )
    except Exception as error:
        # Any failure is the same to us: the run is in PostgreSQL and the sweep will ring.
        logger.warning("doorbell not published", extra={"run_id": run_id, "error": type(error).__name__})
        _drop()
        return False
    return True


def ring(inst: Installation, run_ids: Sequence[str]) -> list[str]:
    """Ring these runs with fresh message ids; returns those the broker did not take.

    After the first failure the rest is not tried: each would cost its time limit.
    """
    task = inst.app.tasks[RESUME]
    for i, run_id in enumerate(run_ids):
        if not publish(inst, task, run_id, None):
            return list(run_ids[i:])
    return []
