"""The Celery app of the tests' processes: `celery -A tests.support.app:app worker`.

Workers read both URLs and celegraph's settings from the environment; the test's own process makes an
app of the same kind with `make_app`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from celery import Celery

import celegraph

# By name: the test's own process starts runs like a web process, without LangGraph.
NAMES = ("retried", "awaited", "looked_up", "asked", "approved", "steps")
ODD = ("failing", "flaky", "exiting", "exiting_awaited", "eating", "eating_awaited", "killing", "deadlined")


def make_app(broker_url: str, settings: Mapping[str, object] | None = None) -> Celery:
    """An app with the tests' agents; `settings` are celegraph's (workers take the environment's)."""
    app = Celery("tests.support.app", broker=broker_url)
    app.conf.update(
        worker_prefetch_multiplier=1,
        broker_connection_retry_on_startup=True,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_hijack_root_logger=True,
        celegraph=dict(settings or {}),
    )
    agents = {name: f"tests.support.graphs:{name}" for name in NAMES}
    celegraph.install(app, agents=agents | {name: f"tests.support.odd:{name}" for name in ODD})
    return app


def __getattr__(name: str) -> Any:
    # Made when a worker asks for it: importing this module changes nothing in the test's process.
    if name != "app":
        raise AttributeError(name)
    app = globals()["app"] = make_app(os.environ["CELERY_BROKER_URL"])
    return app
