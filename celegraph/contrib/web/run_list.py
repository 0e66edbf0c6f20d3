"""The list of runs, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celegraph.contrib.web import access
from celegraph.contrib.web.addresses import cursor, place
from celegraph.contrib.web.exchange import PageRequest, PageResponse
from celegraph.contrib.web.filters import chosen_agents, chosen_statuses, chosen_tag, chosen_text
from celegraph.ledger import listing
from celegraph.ledger.states import STATUSES
from celegraph.ledger.sweep import last_tick

if TYPE_CHECKING:
    from celegraph.contrib.web.pages import Pages

_PAGE = 50


def show(pages: Pages, request: PageRequest) -> PageResponse:
    """GET /runs"""
    viewer = access.viewer_of(request)
    query = request.query
    text, tag, before = chosen_text(query.get("q")), chosen_tag(query.get("tag")), place(query.get("before"))
    with listing.reading(pages.config) as conn:
        visible = access.visible_agents(conn, pages.installation, viewer)
        found = listing.list_runs(
            conn,
            chosen_agents(visible, query.get("agent")),
            statuses=chosen_statuses(query.get("status")),
            text=text,
            tag=tag,
            before=before,
            limit=_PAGE + 1,
        )
        sweep = last_tick(conn, "sweep")
    filters = {
        "status": query.get("status", "") if query.get("status") in STATUSES else "",
        "agent": query.get("agent", "") if query.get("agent") in visible else "",
        "q": text or "",
        "tag": "=".join(tag) if tag else "",
    }
    return pages.html(
        request,
        "runs.html",
        runs=found[:_PAGE],
        agents=visible,
        filters=filters,
        next=cursor(found[_PAGE - 1].key) if len(found) > _PAGE else None,
        first=before is None,
        sweep_age_s=sweep.age_s if sweep else None,
    )
