"""What a worker must be and reach before it takes runs; everything else is refused with the remedy."""

from __future__ import annotations

import logging
import os
from typing import Any

from celegraph.errors import BrokerUnreachable, BrokerUnsupported, CelegraphError, ConfigError
from celegraph.ledger.db_errors import is_lost
from celegraph.ledger.pool import ledger
from celegraph.tasks import queues
from celegraph.tasks.broker import check_connection
from celegraph.tasks.installation import Installation

logger = logging.getLogger("celegraph")


def check_worker(inst: Installation, pool: object) -> None:
    """Raise what makes this worker unfit.  Servers that are merely down are waited for, as Celery does."""
    _check_pool(pool)
    _check_content(inst)
    _warn_of_spawn(inst)
    _warn_of_msgpack()
    try:
        facts = check_connection(inst.app.connection_for_read())
    except BrokerUnreachable as error:
        logger.warning("%s", error)
    else:
        for warning in facts.warnings:
            logger.warning("%s", warning)
        for queue, said in queues.refused(inst).items():
            remedy = queues.REMEDY.format(queue=queue)
            raise BrokerUnsupported(f"the queue {queue!r} is there with another type ({said}): {remedy}")
    _check_ledger(inst)
    for name in inst.agents:
        _load(inst, name)


def _check_pool(pool: object) -> None:
    # A class from the command line, an alias or a path from the configuration.
    name = f"{getattr(pool, '__module__', '')} {pool}"
    if "gevent" in name or "eventlet" in name:
        raise BrokerUnsupported(
            "celegraph does not run on the gevent and eventlet pools (psycopg's connections and the run's"
            " event loop would share one thread); start the worker with --pool prefork, threads or solo"
        )


def _check_content(inst: Installation) -> None:
    accepted: Any = inst.app.conf.accept_content
    if not {"json", "application/json"} & set(accepted):
        raise ConfigError(
            f"this worker would drop celegraph's messages, which are JSON: accept_content is"
            f" {list(accepted)!r}; add 'json'"
        )


def _warn_of_spawn(inst: Installation) -> None:
    conf: Any = inst.app.conf
    if conf.worker_pool_start_method == "spawn" and not (conf.include or conf.imports):
        logger.warning(
            "worker_pool_start_method is 'spawn', and its children import only what include= names: name the"
            " module there that calls celegraph.install, or they know none of its tasks"
        )


def _warn_of_msgpack() -> None:
    # Here and not above: the command line checks brokers without LangGraph.
    from celegraph.agent.graphs import strict_msgpack

    if (
        os.environ.get("LANGGRAPH_STRICT_MSGPACK", "").lower() in ("1", "true", "yes")
        and not strict_msgpack()
    ):
        logger.warning(
            "LangGraph was imported before celegraph and is not strict: who writes to the database can make"
            " this worker import code; import celegraph first, or set LANGGRAPH_STRICT_MSGPACK=true in the"
            " environment"
        )


def _check_ledger(inst: Installation) -> None:
    try:
        with ledger(inst.config):
            pass  # the first use refuses a pooler and a missing or foreign schema
    except Exception as error:
        if not is_lost(error):
            raise
        logger.warning("the ledger's database cannot be reached: %s", error)


def _load(inst: Installation, name: str) -> None:
    try:
        inst.graph(name)
    except CelegraphError:
        raise
    except Exception as error:
        # Whatever the host's module raised when it was imported: runs must not find out one by one.
        logger.exception("agent %r cannot be loaded", name)
        raise ConfigError(f"agent {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
