"""A view that lets a browser follow a run: `path("runs/<str:run_id>/events", run_events(may_see))`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from celegraph.contrib.sse import CONTENT_TYPE, HEADERS, sse
from celegraph.errors import CursorInvalid, RunNotFound
from celegraph.ledger.runs import Run
from celegraph.tasks.control import get_run
from celegraph.tasks.installation import installation
from celegraph.tasks.stream.reader import RunReader

Authorise = Callable[[HttpRequest, Run], bool | Awaitable[bool]]
View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]

_NEEDS_ASGI = (
    "server-sent events need an ASGI server: here each viewer would hold a thread; poll the run's state"
    " instead"
)


def run_events(authorise: Authorise, *, heartbeat: float = 15.0) -> View:
    """The view.  `authorise(request, run)` says who may listen, plain or async; it has no default.

    404: no such run, or not for this user, who shall not learn which.  400: a wrong Last-Event-ID.
    204: the run has ended and everything of it was seen, so a browser stops coming back.  501: no ASGI.
    """
    if not callable(authorise):
        raise TypeError("run_events(authorise): pass a function (request, run) -> bool; there is no default")

    async def view(request: HttpRequest, run_id: str) -> HttpResponseBase:
        if request.method != "GET":
            return HttpResponse(status=405, headers={"Allow": "GET"})
        if not isinstance(request, ASGIRequest):
            return HttpResponse(_NEEDS_ASGI, status=501, content_type="text/plain")
        try:
            run = await sync_to_async(get_run, thread_sensitive=False)(run_id)
        except RunNotFound:
            return HttpResponse(status=404)
        if not await _allowed(authorise, request, run):
            return HttpResponse(status=404)
        after = request.headers.get("Last-Event-ID") or request.GET.get("after") or None
        try:
            if after and await sync_to_async(_all_seen, thread_sensitive=False)(run_id, after):
                return HttpResponse(status=204)
        except CursorInvalid as error:
            return HttpResponse(str(error), status=400, content_type="text/plain")
        stream = sse(run_id, after=after, heartbeat=heartbeat)
        return StreamingHttpResponse(stream, content_type=CONTENT_TYPE, headers=HEADERS)

    # Django refuses async views under ATOMIC_REQUESTS; this one writes nothing.
    for alias in connections.settings:
        transaction.non_atomic_requests(using=alias)(view)
    return view


async def _allowed(authorise: Authorise, request: HttpRequest, run: Run) -> bool:
    if inspect.iscoroutinefunction(authorise):
        return bool(await authorise(request, run))
    # In Django's own thread: a plain function reads request.user, and so the database.
    answer: Any = await sync_to_async(authorise)(request, run)
    return bool(await answer if inspect.isawaitable(answer) else answer)


def _all_seen(run_id: str, after: str) -> bool:
    return [item.kind for item in RunReader(installation(), run_id, after).poll()] == ["end"]
