"""The pages as one object: what all of them share, and the way from a request to a response."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from celery import Celery
from jinja2 import Environment, PackageLoader, StrictUndefined

from celegraph.config import Config
from celegraph.contrib.web import addresses, assets, labels, shown
from celegraph.contrib.web.access import viewer_of
from celegraph.contrib.web.exchange import PageRequest, PageResponse
from celegraph.contrib.web.problems import Problem, problem_of
from celegraph.errors import NotInstalled
from celegraph.tasks.installation import Installation, find, installation, within

if TYPE_CHECKING:
    from celegraph.contrib.web.routes import Route

logger = logging.getLogger("celegraph")

# Nothing but our own files; nothing inline, so that what a model wrote can never run.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# On every page.  Not `no-referrer`: frameworks' own checks of forms want to see that they come from here.
_SECURE = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    # Questions and customers' data: for this person, and not from the disk of a shared machine.
    "Cache-Control": "private, no-store",
}


def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("celegraph.contrib.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(shown.FILTERS)
    found.globals.update(labels=labels, asset_version=assets.version, run_segment=addresses.segment)
    return found


class Pages:
    """The pages of one app.

    `source`: the Celery app that has celegraph, a function that gives it, an `Installation`, or None for
    the current app's; looked up at every request.  `title` stands at the top of every page.
    """

    def __init__(
        self, source: Celery | Installation | Callable[[], Celery] | None = None, *, title: str = "Agents"
    ):
        self._source = source
        self.title = title
        self._templates = _environment()

    @property
    def installation(self) -> Installation:
        """The installation whose runs are shown, or `NotInstalled`."""
        if isinstance(self._source, Installation):
            return self._source
        if self._source is None:
            return installation()
        app = self._source if isinstance(self._source, Celery) else self._source()
        found = find(app)
        if found is None:
            raise NotInstalled(f"the app {app.main!r} has no agents: celegraph.install(app, agents={{...}})")
        return found

    @property
    def config(self) -> Config:
        """The installation's configuration."""
        return self.installation.config

    def respond(self, route: Route, request: PageRequest) -> PageResponse:
        """The response to a request of this route.

        What a user can cause is answered with a page of its own; an error that is nobody's input is raised
        for the host to report.  A HEAD request is a GET: the door drops the body.
        """
        try:
            if not route.public:
                viewer_of(request)
            with within(self.installation):
                return route.page(self, request)
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                raise
            if problem.status >= 500:
                logger.warning("page refused", extra={"page": route.name, "error": type(error).__name__})
            return self.answer(request, problem)

    # -- responses -------------------------------------------------------------------------------------

    def html(self, request: PageRequest, template: str, *, status: int = 200, **context: Any) -> PageResponse:
        """A page from its template."""

        def url(route: str, query: dict[str, str] | None = None, **params: str) -> str:
            given = {name: value for name, value in (query or {}).items() if value}
            return request.url_for(route, **params) + (f"?{urlencode(given)}" if given else "")

        text = self._templates.get_template(template).render(
            title=self.title, viewer=request.viewer, url=url, form_fields=request.form_fields, **context
        )
        return PageResponse(
            status, text.encode("utf-8", "replace"), {"Content-Type": "text/html; charset=utf-8", **_SECURE}
        )

    def answer(self, request: PageRequest, problem: Problem) -> PageResponse:
        """A page that says what was wrong and what to do next."""
        return self.html(request, "answer.html", status=problem.status, problem=problem)

    def text(self, body: str) -> PageResponse:
        """A long text by itself; a browser shows it as it is, and runs nothing in it."""
        return PageResponse(
            200,
            body.encode("utf-8", "replace"),
            {
                "Content-Type": "text/plain; charset=utf-8",
                **_SECURE,
                "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
            },
        )

    def json(self, request: PageRequest, etag: str, value: object) -> PageResponse:
        """A small JSON that a browser keeps; 304 when it is still what the browser has."""
        tag = f'"{etag}"'
        headers = {**_SECURE, "ETag": tag, "Cache-Control": "private, no-cache"}
        held = [part.strip().removeprefix("W/") for part in (request.if_none_match or "").split(",")]
        if tag in held:
            return PageResponse(304, b"", headers)
        body = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return PageResponse(200, body, {"Content-Type": "application/json", **headers})

    def see_other(self, request: PageRequest, url: str) -> PageResponse:
        """After a form: the page that shows what has become of it; a reload sends nothing again."""
        return PageResponse(303, b"", {"Location": url, **_SECURE})
