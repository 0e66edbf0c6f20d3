"""What `doctor` asks the broker and the workers: can runs travel, and does somebody take them?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from celegraph.cli.check import Check, error, ok, warning
from celegraph.errors import CelegraphError
from celegraph.tasks import queues
from celegraph.tasks.broker import BrokerFacts, check_connection
from celegraph.tasks.installation import Installation

# Seconds that workers have to answer; all of them are spent, since nobody knows how many there are.
_ANSWER_WITHIN = 1.5
# kombu's names for what the design supports; others may carry messages, but nobody has tried.
_TRIED = ("redis", "amqp")


def checks(inst: Installation, *, overdue: bool = False) -> Iterator[Check]:
    """Broker first: without it there is nobody to ask.  `overdue`: runs have been ready for too long."""
    yield _msgpack()
    # With time limits of its own; what is sent below would wait for a dead broker for ever.
    try:
        facts = check_connection(inst.app.connection_for_read())
    except CelegraphError as problem:
        yield error("broker", str(problem))
        return
    yield from _broker(facts)
    for queue, said in queues.refused(inst).items():
        yield error("queue", f"{queue} is there with another type: {said}", queues.REMEDY.format(queue=queue))
    served = _served(inst)
    yield from _queues(inst, served)
    if overdue:
        yield from _deaf(inst, [worker for worker, names in served.items() if inst.config.queue in names])


def _broker(facts: BrokerFacts) -> Iterator[Check]:
    described = " ".join(word for word in (facts.server or facts.kind, facts.version) if word)
    if facts.kind not in _TRIED:
        yield warning("broker", f"{facts.kind} is untried", "use Redis >= 6.2, any Valkey, or RabbitMQ")
        return
    yield ok("broker", described)
    for words in facts.warnings:
        says, _, remedy = words.rpartition("; ")
        yield warning("broker", says, remedy)
    if facts.kind == "redis" and not facts.warnings:
        kept = f"persistence {facts.persistence}, maxmemory-policy {facts.maxmemory_policy}"
        yield ok("broker keeps", kept)


def _queues(inst: Installation, served: Mapping[str, set[str]]) -> Iterator[Check]:
    for queue, what in ((inst.config.queue, "runs"), (inst.config.control_queue, "sweep and deadlines")):
        workers = sorted(worker for worker, names in served.items() if queue in names)
        if workers:
            yield ok("queue", f"{queue} ({what}) is consumed by {', '.join(workers)}")
        elif served:
            says = f"{queue} ({what}) is consumed by none of {', '.join(sorted(served))}"
            yield error("queue", says, f"name it in a worker's -Q: celery -A proj worker -Q {queue}")
        else:
            says = f"{queue} ({what}): no worker answered"
            yield error("queue", says, f"start one: celery -A proj worker -Q {queue}")


def _deaf(inst: Installation, workers: Sequence[str]) -> Iterator[Check]:
    """Workers that say they serve the runs and have a free slot, while runs wait: they take nothing.

    Seen after quick interruptions of the broker, in releases of Celery to come as in those before.
    """
    inspect: Any = inst.app.control.inspect(destination=list(workers), timeout=_ANSWER_WITHIN)
    stats, active = inspect.stats() or {}, inspect.active() or {}
    for worker in sorted(set(stats) & set(active)):
        free = int(stats[worker]["pool"]["max-concurrency"]) - len(active[worker])
        if free > 0:
            says = f"{worker} serves it and has {free} free slots, but takes nothing"
            yield error("queue", f"{inst.config.queue} is not consumed: {says}", f"restart {worker}")


def _served(inst: Installation) -> dict[str, set[str]]:
    """Worker -> queues, of those that answer in time (a solo worker does not while it works)."""
    inspect: Any = inst.app.control.inspect(timeout=_ANSWER_WITHIN)
    answered: dict[str, list[dict[str, Any]]] = inspect.active_queues() or {}
    return {worker: {str(queue["name"]) for queue in found} for worker, found in answered.items()}


def _msgpack() -> Check:
    """LangGraph reads this when it is imported; `import celegraph` sets it unless the host has."""
    value = os.environ.get("LANGGRAPH_STRICT_MSGPACK", "true")
    if value.lower() in ("1", "true", "yes"):
        return ok("checkpoints", "strict msgpack: a checkpoint cannot name code to run")
    return warning(
        "checkpoints",
        f"LANGGRAPH_STRICT_MSGPACK={value}: who writes to the database can make workers import code",
        "unset it",
    )
