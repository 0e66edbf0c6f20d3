"""The Celery app of the tests' processes: `celery -A tests.support.app:app worker`.

Workers read both URLs and celegraph's settings from the environment; the test's own process makes an
app of the same kind with `make_app`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from celery import Celery

import celegraph
from celegraph import Agent

AGENTS = "CELEGRAPH_TEST_AGENTS"
CELERY = "CELEGRAPH_TEST_CELERY"

# By name: the test's own process starts runs like a web process, without LangGraph.
NAMES = ("retried", "awaited", "looked_up", "asked", "approved", "steps")
HANGING = ("searching", "blocking", "holding", "starving", "paid_killing", "refused", "fifty")
# Two seconds of silence are a hang of these.
TALKING = ("standing", "beating")
ODD = ("failing", "flaky", "exiting", "exiting_awaited", "eating", "eating_awaited", "killing", "deadlined")

TELLING = ("telling", "told_by_many", "told_within", "told_again", "told_on_record", "told_at_length")


def make_app(
    broker_url: str,
    *,
    settings: Mapping[str, object] | None = None,
    agents: Mapping[str, str] | None = None,
    celery: Mapping[str, object] | None = None,
) -> Celery:
    """An app with the tests' agents and more.

    `settings` are celegraph's (workers take the environment's), `celery` are Celery's.
    """
    app = Celery("tests.support.app", broker=broker_url)
    app.conf.update(
        worker_prefetch_multiplier=1,
        broker_connection_retry_on_startup=True,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        celegraph=dict(settings or {}),
    )
    app.conf.update(celery or {})
    ours: dict[str, object] = {name: f"tests.support.graphs:{name}" for name in NAMES}
    ours |= {name: f"tests.support.odd:{name}" for name in ODD}
    ours |= {name: celegraph.Agent(graph=f"tests.support.telling:{name}", stream=True) for name in TELLING}
    ours["reticent"] = "tests.support.telling:telling"
    ours |= {name: f"tests.support.hanging:{name}" for name in HANGING}
    talking = {name: Agent(graph=f"tests.support.hanging:{name}", heartbeat_timeout="2s") for name in TALKING}
    celegraph.install(app, agents=ours | talking | dict(agents or {}))
    return app


def __getattr__(name: str) -> Any:
    # Made when a worker asks for it: importing this module changes nothing in the test's process.
    if name != "app":
        raise AttributeError(name)
    agents, celery = (json.loads(os.environ.get(variable, "{}")) for variable in (AGENTS, CELERY))
    app = globals()["app"] = make_app(os.environ["CELERY_BROKER_URL"], agents=agents, celery=celery)
    return app
