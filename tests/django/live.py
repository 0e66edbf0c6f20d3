"""The project's web process with a streaming view: `uvicorn tests.django.live:application`."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.project.settings")

from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest
from django.urls import path

import tests.django.project  # noqa: F401 - the Celery app, as a project's __init__ makes it

application = get_asgi_application()
wsgi = get_wsgi_application()

from celegraph.contrib.django.events import run_events  # noqa: E402 - Django is set up now
from celegraph.ledger.runs import Run  # noqa: E402


def may_see(request: HttpRequest, run: Run) -> bool:
    """Whoever names the agent of the run."""
    return request.headers.get("X-Who") == run.agent


async def may_see_later(request: HttpRequest, run: Run) -> bool:
    """The same, awaited."""
    return may_see(request, run)


urlpatterns = [
    path("runs/<str:run_id>/events", run_events(may_see)),
    path("later/<str:run_id>/events", run_events(may_see_later)),
]
