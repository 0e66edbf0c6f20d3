"""A signed link: shows its question to whoever holds it, and decides only by POST, as its person.

No session and no viewer: the token is the permission, for one question and one person.  A GET changes
nothing, for mail scanners and chat previews follow every link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celegraph.contrib.web.approval_page import question_context
from celegraph.contrib.web.deciding import decide_by_form
from celegraph.contrib.web.exchange import PageRequest, PageResponse
from celegraph.contrib.web.question import full_text, must_have
from celegraph.ledger import approvals, listing
from celegraph.tasks.links import read_link

if TYPE_CHECKING:
    from celegraph.contrib.web.pages import Pages


def show(pages: Pages, request: PageRequest) -> PageResponse:
    """GET and POST /link/<token>"""
    link = read_link(pages.config, request.params["token"])
    with listing.reading(pages.config) as conn:
        asked = approvals.get_approval(conn, link.approval_id)
        seen = question_context(conn, asked)
    if request.method == "POST":
        decide_by_form(asked, request.form, by=link.person)
        return pages.see_other(request, request.url_for("link", token=request.params["token"]) + "?done=1")
    if (part := request.query.get("full")) is not None:
        return pages.text(must_have(full_text(asked, part)))
    return pages.html(
        request,
        "link.html",
        person=link.person,
        token=request.params["token"],
        just_decided="done" in request.query and asked.decided_by == link.person,
        may_decide=True,
        **seen,
    )
