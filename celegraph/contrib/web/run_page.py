"""One run: where it stands and why, its course as a picture, what it did and asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celegraph.contrib.web import access
from celegraph.contrib.web.addresses import run_id_of
from celegraph.contrib.web.exchange import PageRequest, PageResponse
from celegraph.contrib.web.problems import NotFound
from celegraph.contrib.web.run_actions import possible_verbs
from celegraph.contrib.web.shown import as_json
from celegraph.contrib.web.timeline import draw
from celegraph.ledger import listing
from celegraph.ledger.explain import look
from celegraph.tasks.sentence import sentence

if TYPE_CHECKING:
    from celegraph.contrib.web.pages import Pages

# Of each the newest; a run that loops for weeks has more than a page can hold.
_EVENTS = 400
_ROWS = 100
_LONGEST_VALUE = 2_000
_LONGEST_CELL = 300
_PARTS = ("input", "output", "error")


def show(pages: Pages, request: PageRequest) -> PageResponse:
    """GET /runs/<run>"""
    viewer = access.viewer_of(request)
    run_id = run_id_of(request.params["run"])
    with listing.reading(pages.config) as conn:
        version = listing.run_version(conn, run_id)
        agent = access.must_see(viewer, version.agent, "run")
        seen = look(conn, run_id)
        values = listing.run_values(conn, run_id, longest=_LONGEST_VALUE)
        effects = listing.run_effects(conn, run_id, limit=_ROWS + 1, longest=_LONGEST_CELL)
        questions = listing.run_approvals(conn, run_id, limit=_ROWS + 1)
        events = listing.newest_events(conn, run_id, limit=_EVENTS + 1)
    may_operate = viewer.may("operate", agent)
    return pages.html(
        request,
        "run.html",
        run=seen.run,
        sentence=sentence(seen, pages.config),
        holder=seen.holder,
        version=version.version,
        values=[(part, values[part], values[f"{part}_length"] or 0) for part in _PARTS],
        longest=_LONGEST_VALUE,
        effects=effects[-_ROWS:],
        effects_left_out=len(effects) > _ROWS,
        questions=questions[-_ROWS:],
        questions_left_out=len(questions) > _ROWS,
        events=events[-_EVENTS:],
        events_left_out=len(events) > _EVENTS,
        timeline=draw(events[-_EVENTS:], seen.run, questions[-_ROWS:]),
        verbs=possible_verbs(seen.run) if may_operate else [],
        may_operate=may_operate,
        did=request.query.get("did", ""),
    )


def live(pages: Pages, request: PageRequest) -> PageResponse:
    """GET /runs/<run>.json: whether the page would say something else by now.

    Polled: a stream would hold one of the server's threads for everybody who looks.
    """
    viewer = access.viewer_of(request)
    with listing.reading(pages.config) as conn:
        version = listing.run_version(conn, run_id_of(request.params["run"]))
    access.must_see(viewer, version.agent, "run")
    ended = version.status in ("finished", "failed", "cancelled")
    value = {"version": version.version, "status": version.status, "ended": ended}
    return pages.json(request, version.version, value)


def text(pages: Pages, request: PageRequest) -> PageResponse:
    """GET /runs/<run>/<part>.txt: input, output or error without a cut."""
    viewer = access.viewer_of(request)
    part = request.params["part"]
    if part not in _PARTS:
        raise NotFound("text")
    with listing.reading(pages.config) as conn:
        agent, value = listing.run_value(conn, run_id_of(request.params["run"]), part)
    access.must_see(viewer, agent, "run")
    return pages.text(as_json(value))
