"""What people may do to a run from its page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from celegraph.contrib.web import access, labels
from celegraph.contrib.web.addresses import effect_key_of, run_id_of, segment
from celegraph.contrib.web.deciding import LONGEST_REF, form_text
from celegraph.contrib.web.exchange import PageRequest, PageResponse
from celegraph.contrib.web.problems import BadRequest, NotFound
from celegraph.contrib.web.viewer import Viewer
from celegraph.ledger import effects, listing
from celegraph.ledger.runs import Run
from celegraph.ledger.states import ARROWS
from celegraph.ledger.values import MAX_NOTE
from celegraph.tasks import control
from celegraph.tasks.resolve import ANSWERS, resolve_effect

if TYPE_CHECKING:
    from celegraph.contrib.web.pages import Pages


def possible_verbs(run: Run) -> list[str]:
    """The verbs whose arrows start from where the run is, and those that a run at work takes."""
    if run.cancel_requested_at is not None and not run.terminal:
        return []
    starts = {verb: set[str](ARROWS[verb][0]) for verb in labels.RUN_VERBS}
    # Asked of its owner, which holds it at its next step; until then it can be taken back.
    starts["pause" if run.pause_requested_at is None else "resume"].add("running")
    return [verb for verb in labels.RUN_VERBS if run.status in starts[verb]]


def act(pages: Pages, request: PageRequest) -> PageResponse:
    """POST /runs/<run>/act"""
    viewer = access.viewer_of(request)
    run_id = run_id_of(request.params["run"])
    with listing.reading(pages.config) as conn:
        agent = listing.run_version(conn, run_id).agent
    access.must(viewer, "operate", agent, "run")
    verb = request.form.get("verb", "")
    if verb not in labels.RUN_VERBS:
        raise BadRequest("This form names nothing that can be done to a run. Reload the run and try again.")
    why = form_text(request.form, "note", MAX_NOTE)
    _DO[verb](run_id, viewer.name, f"{verb} asked by {viewer.name}" + (f": {why}" if why else ""))
    return _back(pages, request, run_id, verb)


_DO: dict[str, Callable[[str, str, str], object]] = {
    "cancel": lambda run_id, by, why: control.cancel_run(run_id, reason=why),
    "pause": lambda run_id, by, why: control.pause_run(run_id, reason=why),
    "resume": lambda run_id, by, why: control.resume_run(run_id, by=by),
    "retry": lambda run_id, by, why: control.retry_run(run_id, by=by),
    "release": lambda run_id, by, why: control.release_run(run_id, by=by),
}


def resolve(pages: Pages, request: PageRequest) -> PageResponse:
    """POST /runs/<run>/resolve: what became of a call that nobody saw the end of."""
    viewer = access.viewer_of(request)
    run_id, key = _own_effect(pages, request, viewer)
    answer = request.form.get("verb", "")
    if answer not in ANSWERS:
        raise BadRequest("This form names no answer. Reload the run and try again.")
    resolve_effect(
        key,
        answer,
        by=viewer.name,
        ref=form_text(request.form, "ref", LONGEST_REF) or None,
        note=form_text(request.form, "note", MAX_NOTE) or None,
    )
    return _back(pages, request, run_id, "resolve")


def release_effect(pages: Pages, request: PageRequest) -> PageResponse:
    """POST /runs/<run>/release-effect: an enqueued effect that was given up is tried again."""
    viewer = access.viewer_of(request)
    run_id, key = _own_effect(pages, request, viewer)
    control.release_effect(key, by=viewer.name)
    return _back(pages, request, run_id, "release-effect")


def _own_effect(pages: Pages, request: PageRequest, viewer: Viewer) -> tuple[str, str]:
    """The run and the key of one of its effects; the viewer may operate it."""
    run_id = run_id_of(request.params["run"])
    key = effect_key_of(request.form.get("key", ""))
    with listing.reading(pages.config) as conn:
        agent = listing.run_version(conn, run_id).agent
        access.must(viewer, "operate", agent, "run")
        effect = effects.get_effect(conn, key)
    # The permission was asked for this run: a form must not reach into another's.
    if effect.run_id != run_id:
        raise NotFound("effect")
    return run_id, key


def _back(pages: Pages, request: PageRequest, run_id: str, did: str) -> PageResponse:
    return pages.see_other(request, request.url_for("run", run=segment(run_id)) + f"?did={did}")
