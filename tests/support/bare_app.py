"""The app of a host before it had celegraph: it takes messages it does not know."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(name)
    app = globals()["app"] = Celery("bare", broker=os.environ["CELERY_BROKER_URL"], set_as_current=False)
    return app
