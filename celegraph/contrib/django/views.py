"""The pages as Django views: who is looking, Django's own check of forms, and the way there and back.

Plain functions on purpose.  Under ASGI Django runs them in its thread, where ATOMIC_REQUESTS and the joining
of transactions work; async views have neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.middleware.csrf import get_token
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from celegraph.contrib.django.permissions import may
from celegraph.contrib.web import PageRequest, PageResponse, Pages, Route
from celegraph.contrib.web.problems import TooLarge, problem_of
from celegraph.contrib.web.viewer import Action

View = Callable[..., HttpResponseBase]

pages = Pages()


class Person:
    """A user as the pages see one; what they may do is asked once per request."""

    def __init__(self, user: Any):
        self._user = user
        self._may: dict[tuple[str, str], bool] = {}

    @property
    def name(self) -> str:
        """Stands in the record of a decision."""
        return str(self._user.get_username())

    def may(self, action: Action, agent: str) -> bool:
        """As `permissions.may`."""
        if (action, agent) not in self._may:
            self._may[action, agent] = may(self._user, action, agent)
        return self._may[action, agent]


def view_of(route: Route) -> View:
    """The view of one line of the table of routes."""

    # Django's check is made here, whatever middleware the project has, and not before us: a form that is
    # too large to be read would be answered by Django's bare 400.
    @csrf_protect
    def checked(request: HttpRequest, **params: str) -> HttpResponseBase:
        person = None if route.public else _person(request)
        if person is None and not route.public and _can_sign_in(request, route):
            return redirect_to_login(request.get_full_path())
        return _response(request, pages.respond(route, _page_request(request, params, person)))

    # A HEAD asks for a page without its body; a route that only takes forms has no page.
    taken = (*route.methods, "HEAD") if "GET" in route.methods else route.methods

    @csrf_exempt
    def view(request: HttpRequest, **params: str) -> HttpResponseBase:
        if request.method not in taken:
            return HttpResponseNotAllowed(route.methods)
        try:
            return checked(request, **params)
        except (RequestDataTooBig, TooManyFieldsSent):
            problem = problem_of(TooLarge())
            assert problem is not None
            # Without the form, which cannot be read.
            return _response(request, pages.answer(_page_request(request, params, None, form={}), problem))

    view.__name__ = f"celegraph_{route.name}"
    return view


def _person(request: HttpRequest) -> Person | None:
    user = getattr(request, "user", None)
    return Person(user) if user is not None and user.is_authenticated else None


def _can_sign_in(request: HttpRequest, route: Route) -> bool:
    """A page that can be shown after signing in: no form, which would be lost, and no script's request."""
    return request.method != "POST" and not route.path.endswith(".json") and hasattr(request, "user")


def _page_request(
    request: HttpRequest, params: dict[str, str], person: Person | None, form: dict[str, str] | None = None
) -> PageRequest:
    found = request.resolver_match
    namespace = found.namespace if found is not None else "celegraph"

    def url_for(route: str, **params: str) -> str:
        # Under the namespace it was included with.
        return reverse(f"{namespace}:{route}", kwargs=params)

    return PageRequest(
        method="GET" if request.method == "HEAD" else str(request.method),
        url_for=url_for,
        viewer=person,
        params=params,
        query=request.GET.dict(),
        form=request.POST.dict() if form is None else form,
        form_fields=lambda: {"csrfmiddlewaretoken": get_token(request)},
        if_none_match=request.headers.get("If-None-Match"),
    )


def _response(request: HttpRequest, answer: PageResponse) -> HttpResponse:
    body = b"" if request.method == "HEAD" else answer.body
    return HttpResponse(body, status=answer.status, headers=dict(answer.headers))
