"""The Celery application that serves the refund agent: `celery -A examples.payments.app worker -B`.

The broker comes from `CELERY_BROKER_URL`, the database from `CELEGRAPH_DATABASE_URL`.
"""

from __future__ import annotations

from celery import Celery

import celegraph

app = Celery("payments")
celegraph.install(app, agents={"refund": "examples.payments.agent:graph"})
