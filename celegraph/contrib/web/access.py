"""Who may see and do what: the viewer's answers, asked in one place."""

from __future__ import annotations

from celegraph.contrib.web.exchange import PageRequest
from celegraph.contrib.web.problems import NobodySignedIn, NotAllowed, NotFound
from celegraph.contrib.web.viewer import Action, Viewer
from celegraph.ledger import listing
from celegraph.ledger.connect import Conn
from celegraph.tasks.installation import Installation

_WHAT = {
    "view": "see runs",
    "decide": "answer questions",
    "operate": "operate runs",
}


def viewer_of(request: PageRequest) -> Viewer:
    """Who is looking; a route that is not public has somebody."""
    if request.viewer is None:
        raise NobodySignedIn()
    return request.viewer


def visible_agents(conn: Conn, inst: Installation, viewer: Viewer) -> list[str]:
    """The agents whose runs may be listed: installed ones, and those that have runs from before."""
    known = sorted({*inst.agents, *listing.agents(conn)})
    return [agent for agent in known if viewer.may("view", agent)]


def must_see(viewer: Viewer, agent: str | None, what: str) -> str:
    """The agent's name; for a viewer who may not know of it there is no such thing."""
    if agent is None or not viewer.may("view", agent):
        raise NotFound(what)
    return agent


def must(viewer: Viewer, action: Action, agent: str | None, what: str) -> None:
    """403 for somebody who may see but not act; 404 for somebody who may not even see."""
    seen = must_see(viewer, agent, what)
    if not viewer.may(action, seen):
        raise NotAllowed(
            f"{viewer.name} may not {_WHAT[action]} of the agent {seen!r}. Nothing was changed; ask whoever"
            " grants permissions here."
        )
