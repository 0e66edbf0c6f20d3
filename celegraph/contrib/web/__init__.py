"""The pages, once for every framework: inbox, approval, runs, run, signed link.

A door (Django, Flask) makes its URLs from `routes.ROUTES`, turns its request into a `PageRequest`, hands
it to `Pages.respond` and sends back the `PageResponse`.  Nothing here knows a framework, a session or
a cookie: who looks is a `Viewer`, and that a form is no forgery has been checked by the door.
"""

from __future__ import annotations

from celegraph.contrib.web.exchange import PageRequest, PageResponse
from celegraph.contrib.web.pages import Pages
from celegraph.contrib.web.routes import ROUTES, Route
from celegraph.contrib.web.viewer import Action, Viewer

__all__ = ["ROUTES", "Action", "PageRequest", "PageResponse", "Pages", "Route", "Viewer"]
