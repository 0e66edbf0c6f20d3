"""What a door hands in and gets back: a request and a response, without a framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from celegraph.contrib.web.viewer import Viewer


class UrlFor(Protocol):
    """The door's way from a route's name and its path parameters to a URL."""

    def __call__(self, route: str, **params: str) -> str:
        """A path of this site, escaped for a URL."""


@dataclass(frozen=True)
class PageRequest:
    """A request whose form, if it has one, is known to come from our own page.

    `params`, `query` and `form` hold one text per name (the last one, when a name is repeated).
    `form_fields` gives the hidden fields that the door wants to find in every form again (its CSRF token);
    it is called only for a page that has a form.  `viewer` may be None on routes that are `public`.
    """

    method: str
    url_for: UrlFor
    viewer: Viewer | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    form_fields: Callable[[], Mapping[str, str]] = dict
    if_none_match: str | None = None


@dataclass(frozen=True)
class PageResponse:
    """What the door sends, as it is; `headers` are complete, content type and all."""

    status: int
    body: bytes
    headers: Mapping[str, str]
