"""celegraph's two queues: known wherever something is published, consumed by workers without -Q.

Never through `conf.task_queues`, which would take the host's own queue away.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from celegraph.tasks.broker import other_type
from celegraph.tasks.installation import Installation

QUORUM = {"x-queue-type": "quorum"}


def declare(inst: Installation) -> None:
    """Make both known to the app's router, also where the host forbids to create missing queues."""
    queues = inst.app.amqp.queues
    for name in _names(inst):
        if name not in queues:
            queues.add(_new(inst, name))


def consume(inst: Installation, without: Container[str] = ()) -> None:
    """Add both to what this process consumes, beside the host's own; `without` names exceptions."""
    declare(inst)
    queues = inst.app.amqp.queues
    for name in _names(inst):
        if name not in without:
            queues.select_add(queues[name])


def refused(inst: Installation) -> dict[str, str]:
    """Queue -> what RabbitMQ says: it has one of this name already, of another type than this app wants.

    `BrokerUnreachable` when it cannot be asked.
    """
    declare(inst)
    connection = inst.app.connection_for_read()
    said = {name: other_type(connection, inst.app.amqp.queues[name]) for name in _names(inst)}
    return {name: why for name, why in said.items() if why is not None}


REMEDY = (
    "let it run empty and remove it (`rabbitmqctl delete_queue {queue}`): runs are in PostgreSQL, and"
    " doorbells that are lost with it are rung again; or make task_default_queue_type what it was"
)


def _new(inst: Installation, name: str) -> Any:
    """Of the type and exchange the host wants for queues that it does not list (quorum, topic).

    A host that has made its default queue a quorum queue means RabbitMQ's queues altogether: a classic
    one beside it would be the one that a lost node takes along.
    """
    queue = inst.app.amqp.queues.new_missing(name)
    if queue.queue_arguments is None and inst.app.conf.task_default_queue_type == "quorum":
        queue.queue_arguments = dict(QUORUM)
    return queue


def _names(inst: Installation) -> tuple[str, str]:
    return inst.config.queue, inst.config.control_queue
