"""One question: what is bound, what follows from each answer, and the forms to give one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celegraph.agent.actions import review_of
from celegraph.contrib.web import access
from celegraph.contrib.web.addresses import approval_id_of
from celegraph.contrib.web.deciding import decide_by_form
from celegraph.contrib.web.editing import edit_fields
from celegraph.contrib.web.exchange import PageRequest, PageResponse
from celegraph.contrib.web.question import editable_args, full_text, must_have, subjects
from celegraph.ledger import approvals, listing
from celegraph.ledger.approvals import Approval
from celegraph.ledger.connect import Conn
from celegraph.ledger.values import MAX_NOTE
from celegraph.tasks.asked import consequences, decided_before, verbs_of

if TYPE_CHECKING:
    from celegraph.contrib.web.pages import Pages


def show(pages: Pages, request: PageRequest) -> PageResponse:
    """GET /approvals/<approval>"""
    viewer = access.viewer_of(request)
    with listing.reading(pages.config) as conn:
        asked = _asked(conn, request)
        agent = access.must_see(viewer, asked.agent, "question")
        seen = question_context(conn, asked)
    return pages.html(
        request,
        "approval.html",
        may_decide=viewer.may("decide", agent),
        just_decided="done" in request.query and asked.decided_by == viewer.name,
        **seen,
    )


def decide(pages: Pages, request: PageRequest) -> PageResponse:
    """POST /approvals/<approval>/decide"""
    viewer = access.viewer_of(request)
    with listing.reading(pages.config) as conn:
        asked = _asked(conn, request)
    access.must(viewer, "decide", asked.agent, "question")
    decide_by_form(asked, request.form, by=viewer.name)
    return pages.see_other(request, request.url_for("approval", approval=asked.approval_id) + "?done=1")


def text(pages: Pages, request: PageRequest) -> PageResponse:
    """GET /approvals/<approval>/<part>.txt: the prompt or the arguments without a cut."""
    viewer = access.viewer_of(request)
    with listing.reading(pages.config) as conn:
        asked = _asked(conn, request)
    access.must_see(viewer, asked.agent, "question")
    return pages.text(must_have(full_text(asked, request.params["part"])))


def question_context(conn: Conn, asked: Approval) -> dict[str, Any]:
    """What the templates of a question show; for the link's page too."""
    call = listing.call_state(conn, asked.effect_key or asked.idempotency_key)
    verbs = verbs_of(asked)
    return {
        "asked": asked,
        "asked_by": asked.asked.get("node") if isinstance(asked.asked, dict) else None,
        "decided_before": decided_before(asked),
        "review": review_of(asked.args) if "each" in verbs else None,
        "call": call,
        "subjects": subjects(asked),
        "verbs": verbs,
        "fields": edit_fields(editable_args(asked)) if "edit" in verbs else [],
        "consequences": consequences(asked),
        "is_open": asked.status == "open" and not asked.overdue,
        "longest_note": MAX_NOTE,
    }


def _asked(conn: Conn, request: PageRequest) -> Approval:
    return approvals.get_approval(conn, approval_id_of(request.params["approval"]))
