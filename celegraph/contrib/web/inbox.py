"""The inbox: every open question of the agents that the viewer may see, the oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celegraph.contrib.web import access, labels
from celegraph.contrib.web.addresses import cursor, place
from celegraph.contrib.web.exchange import PageRequest, PageResponse
from celegraph.contrib.web.filters import chosen_agents
from celegraph.ledger import listing
from celegraph.ledger.sweep import last_tick

if TYPE_CHECKING:
    from celegraph.contrib.web.pages import Pages

_PAGE = 25


def show(pages: Pages, request: PageRequest) -> PageResponse:
    """GET /"""
    viewer = access.viewer_of(request)
    query = request.query
    kind = query.get("kind") if query.get("kind") in labels.KINDS else None
    overdue = query.get("overdue") == "yes"
    after = place(query.get("after"))
    with listing.reading(pages.config) as conn:
        visible = access.visible_agents(conn, pages.installation, viewer)
        agents = chosen_agents(visible, query.get("agent"))
        kinds = [kind] if kind else None
        found = listing.inbox(conn, agents, kinds=kinds, overdue=overdue, after=after, limit=_PAGE + 1)
        count = listing.inbox_count(conn, agents, kinds=kinds, overdue=overdue)
        sweep = last_tick(conn, "sweep")
    filters = {
        "agent": query.get("agent", "") if query.get("agent") in visible else "",
        "kind": kind or "",
        "overdue": "yes" if overdue else "",
    }
    return pages.html(
        request,
        "inbox.html",
        questions=found[:_PAGE],
        count=count,
        most=listing.MOST_COUNTED,
        agents=visible,
        filters=filters,
        next=cursor(found[_PAGE - 1].key) if len(found) > _PAGE else None,
        first=after is None,
        sweep_age_s=sweep.age_s if sweep else None,
    )
