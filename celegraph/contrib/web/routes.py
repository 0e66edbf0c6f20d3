"""Every URL of the pages in one table, from which each door makes its own.

A path parameter (`<run>`) is one segment without a slash.  Run ids may hold any printable character,
so they travel encoded (`addresses`); doors pass segments on as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from celegraph.contrib.web import approval_page, assets, inbox, link_page, run_actions, run_list, run_page
from celegraph.contrib.web.exchange import PageRequest, PageResponse

if TYPE_CHECKING:
    from celegraph.contrib.web.pages import Pages

Page = Callable[["Pages", PageRequest], PageResponse]


@dataclass(frozen=True)
class Route:
    """One URL.  `public`: works without a `Viewer` (a signed link names its person; a style sheet has no
    secrets), and a POST there needs no check against forged forms: who can write the URL holds the
    permission already.  Every other POST is checked by the door before the page is asked."""

    name: str
    path: str
    methods: tuple[str, ...]
    page: Page
    public: bool = False


# In order: a door that takes the first match must meet `<run>.json` before `<run>`.
ROUTES: tuple[Route, ...] = (
    Route("inbox", "/", ("GET",), inbox.show),
    Route("approval", "/approvals/<approval>", ("GET",), approval_page.show),
    Route("decide", "/approvals/<approval>/decide", ("POST",), approval_page.decide),
    Route("approval_text", "/approvals/<approval>/<part>.txt", ("GET",), approval_page.text),
    Route("runs", "/runs", ("GET",), run_list.show),
    Route("run_live", "/runs/<run>.json", ("GET",), run_page.live),
    Route("run", "/runs/<run>", ("GET",), run_page.show),
    Route("run_text", "/runs/<run>/<part>.txt", ("GET",), run_page.text),
    Route("run_act", "/runs/<run>/act", ("POST",), run_actions.act),
    Route("resolve", "/runs/<run>/resolve", ("POST",), run_actions.resolve),
    Route("release_effect", "/runs/<run>/release-effect", ("POST",), run_actions.release_effect),
    Route("link", "/link/<token>", ("GET", "POST"), link_page.show, public=True),
    Route("asset", "/static/<file>", ("GET",), assets.show, public=True),
)
