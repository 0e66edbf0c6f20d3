"""A host's app: tasks of its own, and one of the configurations that hosts have.

Which one, the environment says (`VARIANT`); a test's own process applies `VARIANTS` itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from celery import signals
from kombu import Queue

import celegraph
from tests.support.app import make_app

VARIANT = "CELEGRAPH_TEST_HOST"
APP = "tests.support.host:app"

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "renamed": {"task_default_queue": "shop"},
    "routed": {"task_routes": {"shop.*": {"queue": "celery"}, "*": {"queue": "elsewhere"}}},
    "closed": {
        "task_queues": [Queue("shop", routing_key="shop")],
        "task_default_queue": "shop",
        "task_create_missing_queues": False,
    },
    "early": {
        "task_acks_on_failure": False,
        "task_acks_on_timeout": False,
        "task_retry_on_worker_lost": True,
        "task_default_rate_limit": "1/h",
        "task_store_errors_even_if_ignored": True,
    },
    # Every second all messages that are a second old are delivered again.
    "impatient": {
        "broker_transport_options": {
            "visibility_timeout": 1,
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
        }
    },
    # Its parent process has used the ledger before the pool forks.
    "querying": {},
    "soft": {"worker_soft_shutdown_timeout": 5.0},
    "cancelling": {"worker_cancel_long_running_tasks_on_connection_loss": True},
    "jsonless": {"task_serializer": "pickle", "accept_content": ["pickle"]},
}


def _touch(path: str) -> None:
    Path(path).touch()


def _query(**_: Any) -> None:
    # Before Celery has set its logging up.
    sys.stderr.write(f"the parent has read {len(celegraph.list_runs())} runs\n")


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(name)
    app = make_app(os.environ["CELERY_BROKER_URL"])
    app.conf.update(VARIANTS[os.environ.get(VARIANT, "plain")])
    app.task(name="shop.touch", shared=False)(_touch)
    if os.environ.get(VARIANT) == "querying":
        signals.worker_init.connect(_query, weak=False)
    globals()["app"] = app
    return app
