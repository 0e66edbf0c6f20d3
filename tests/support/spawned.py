"""The host's app for pools that spawn their children: each imports this module anew, and nothing else."""

from __future__ import annotations

import os

from tests.support.app import make_app

app = make_app(os.environ["CELERY_BROKER_URL"])
app.conf.update(worker_pool_start_method="spawn", include=["tests.support.spawned"])
