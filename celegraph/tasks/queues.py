"""celegraph's two queues: known wherever something is published, consumed by workers without -Q.

Never through `conf.task_queues`, which would take the host's own queue away.
"""

from __future__ import annotations

from collections.abc import Container

from celegraph.tasks.installation import Installation


def declare(inst: Installation) -> None:
    """Make both known to the app's router, also where the host forbids to create missing queues."""
    queues = inst.app.amqp.queues
    for name in _names(inst):
        if name not in queues:
            # Of the type and exchange the host wants for queues that it does not list (quorum, topic).
            queues.add(queues.new_missing(name))


def consume(inst: Installation, without: Container[str] = ()) -> None:
    """Add both to what this process consumes, beside the host's own; `without` names exceptions."""
    declare(inst)
    queues = inst.app.amqp.queues
    for name in _names(inst):
        if name not in without:
            queues.select_add(queues[name])


def _names(inst: Installation) -> tuple[str, str]:
    return inst.config.queue, inst.config.control_queue
