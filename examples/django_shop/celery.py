"""The Celery app, and the one line that gives it agents."""

from __future__ import annotations

import os

from celery import Celery

import celegraph

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "examples.django_shop.settings")

app = Celery("django_shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
celegraph.install(app, agents={"refund": "examples.django_shop.orders.agents:graph"})
