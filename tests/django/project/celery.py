"""As in Celery's own guide for Django, plus one line."""

from __future__ import annotations

import os

from celery import Celery

import celegraph

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.project.settings")

app = Celery("project")
if "PROJECT_NO_NAMESPACE" in os.environ:
    app.conf.update(broker_url=os.environ["PROJECT_BROKER_URL"])
else:
    app.config_from_object("django.conf:settings", namespace="CELERY")

if "PROJECT_WITHOUT_INSTALL" not in os.environ:
    agents = "tests.django.project.shop.agents"
    names = ("pack", "apack", "refund")
    celegraph.install(app, agents={name: f"{agents}:{name}_graph" for name in names})
