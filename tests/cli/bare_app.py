"""A Celery app that nobody has given celegraph."""

from __future__ import annotations

from celery import Celery

app = Celery("bare", set_as_current=False)
