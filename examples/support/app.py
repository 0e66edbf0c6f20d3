"""The Celery application that serves the support agent: `celery -A examples.support.app worker -B`.

The broker comes from `CELERY_BROKER_URL`, the database from `CELEGRAPH_DATABASE_URL`.
"""

from __future__ import annotations

from celery import Celery

import celegraph

app = Celery("support")
app.conf.update(
    # An attempt may take minutes: a worker shall not sit on doorbells that another could answer.
    worker_prefetch_multiplier=1,
    worker_send_task_events=True,
    task_send_sent_event=True,
    broker_connection_retry_on_startup=True,
)
celegraph.install(app, agents={"support": "examples.support.agent:graph"})
