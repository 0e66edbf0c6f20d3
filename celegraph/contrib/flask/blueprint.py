"""The pages as a Flask blueprint, generated from the table of routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from celery import Celery
from flask import Blueprint, Flask, Request, Response, current_app, request, url_for
from werkzeug.exceptions import RequestEntityTooLarge

from celegraph.contrib.flask import forms
from celegraph.contrib.web import ROUTES, PageRequest, PageResponse, Pages, Route, Viewer
from celegraph.contrib.web.problems import PageProblem, TooLarge, problem_of
from celegraph.errors import ConfigError

Authorise = Callable[[Request], Viewer | None]

_HOW = (
    "celegraph_blueprint(app, authorise=...) needs a function from a request to a viewer, for nobody may see"
    " runs and decide unless you say so, for example\n"
    "    def authorise(request):\n"
    "        return Staff(current_user) if current_user.is_authenticated else None\n"
    "where a Staff has a `name` and `may(action, agent)`, action being 'view', 'decide' or 'operate'"
)


def celegraph_blueprint(
    app: Flask | Celery | None = None,
    *,
    authorise: Authorise | None = None,
    name: str = "celegraph",
    title: str = "Agents",
) -> Blueprint:
    """Inbox, approvals, runs and signed links; `app.register_blueprint(..., url_prefix="/agents")`.

    `app`: the Flask app with a Celery app in its extensions, or the Celery app itself; by default those of
    the request.  `authorise(request)` names who is looking, or None for nobody (who gets a 403); it may
    abort with a redirect to your sign-in.  Without it: `ConfigError`, there is no open default.
    """
    if not callable(authorise):
        raise ConfigError(_HOW)
    pages = Pages(app if isinstance(app, Celery) else lambda: _celery_of(app), title=title)
    blueprint = Blueprint(name, __name__)
    for route in ROUTES:
        blueprint.add_url_rule(
            route.path, route.name, _view(pages, route, authorise, name), methods=list(route.methods)
        )
    return blueprint


def _celery_of(app: Flask | None) -> Celery:
    found = (app or current_app).extensions.get("celery")
    if not isinstance(found, Celery):
        raise ConfigError(
            "the Flask app has no Celery app: call celegraph.contrib.flask.celery_init_app(app), or hand your"
            " Celery app to celegraph_blueprint(celery_app, authorise=...)"
        )
    return found


def _view(pages: Pages, route: Route, authorise: Authorise, name: str) -> Callable[..., Response]:
    def view(**params: str) -> Response:
        try:
            viewer = None if route.public else _viewer(authorise)
            form = _form(route)
        except PageProblem as error:
            problem = problem_of(error)
            assert problem is not None
            return _response(pages.answer(_page_request(route, name, params), problem))
        return _response(pages.respond(route, _page_request(route, name, params, viewer, form)))

    return view


def _viewer(authorise: Authorise) -> Viewer | None:
    viewer = authorise(request)
    # A function that answers True has not said who it is, and True may do everything.
    if viewer is not None and not (hasattr(viewer, "name") and callable(getattr(viewer, "may", None))):
        raise ConfigError(
            f"authorise returned a {type(viewer).__name__}; return a viewer with `name` and"
            " `may(action, agent)`, or None"
        )
    return viewer


def _form(route: Route) -> dict[str, str]:
    """The form, if there is one and it is ours."""
    if request.method != "POST":
        return {}
    try:
        form = request.form.to_dict()
    except RequestEntityTooLarge:
        raise TooLarge() from None
    if not route.public:
        forms.check_form()
    return form


def _page_request(
    route: Route,
    name: str,
    params: dict[str, str],
    viewer: Viewer | None = None,
    form: dict[str, str] | None = None,
) -> PageRequest:
    def url(route: str, **params: str) -> str:
        # Under the name it was registered with, which nested blueprints make longer.
        return url_for(f"{request.blueprint or name}.{route}", **cast(dict[str, Any], params))

    return PageRequest(
        method="GET" if request.method == "HEAD" else request.method,
        url_for=url,
        viewer=viewer,
        params=params,
        query=request.args.to_dict(),
        form=form or {},
        form_fields=forms.host_fields if route.public else forms.own_fields,
        if_none_match=request.headers.get("If-None-Match"),
    )


def _response(answer: PageResponse) -> Response:
    return Response(answer.body, status=answer.status, headers=dict(answer.headers))
