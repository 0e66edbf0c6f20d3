"""The style sheet and the script, served by the package itself: no build step, no other host."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from celegraph.contrib.web.exchange import PageRequest, PageResponse
from celegraph.contrib.web.problems import NotFound

if TYPE_CHECKING:
    from celegraph.contrib.web.pages import Pages

_TYPES = {
    "pages.css": "text/css; charset=utf-8",
    "pages.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@cache
def _content(file: str) -> bytes:
    return resources.files("celegraph.contrib.web").joinpath("static", file).read_bytes()


@cache
def version(file: str) -> str:
    """Changes with the file: it may be kept for ever under its URL."""
    return hashlib.sha256(_content(file)).hexdigest()[:12]


def show(pages: Pages, request: PageRequest) -> PageResponse:
    """GET /static/<file>"""
    file = request.params["file"]
    if file not in _TYPES:
        raise NotFound("file")
    fresh = request.query.get("v") == version(file)
    return PageResponse(
        200,
        _content(file),
        {
            "Content-Type": _TYPES[file],
            # Under an old page's URL the file is another one than that page wants.
            "Cache-Control": "public, max-age=31536000, immutable" if fresh else "no-cache",
            "X-Content-Type-Options": "nosniff",
        },
    )
