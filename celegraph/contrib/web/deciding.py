"""From a form to a decision: checked whole before anything is written, and told who was first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from celegraph.agent.actions import review_of
from celegraph.contrib.web.editing import edited
from celegraph.contrib.web.problems import BadRequest, TooLate, Unfit
from celegraph.contrib.web.question import editable_args
from celegraph.contrib.web.shown import count
from celegraph.ledger.approvals import Approval
from celegraph.ledger.values import MAX_NOTE, check_json
from celegraph.tasks.asked import verbs_of
from celegraph.tasks.decide import Decided, decide
from celegraph.tasks.words import moment, visible

# A document at most.
LONGEST_ANSWER = 100_000
# A provider's id, as the ledger's index holds it.
LONGEST_REF = 500


def decide_by_form(asked: Approval, form: Mapping[str, str], by: str) -> Decided:
    """The decision, if it is the first; `TooLate` says who was, the other problems what does not fit."""
    verb = form.get("verb", "")
    if verb not in verbs_of(asked):
        raise BadRequest(
            "This form names no answer that the question takes. Reload the question and try again."
        )
    if asked.status != "open" or asked.overdue:
        raise TooLate(too_late(asked))
    note = form_text(form, "note", MAX_NOTE) or None
    if asked.kind == "doubt":
        ref = form_text(form, "ref", LONGEST_REF) or None
        done = decide(asked.approval_id, "answer", value=verb, by=by, note=note, ref=ref)
    elif verb == "edit":
        done = decide(asked.approval_id, "edit", args=edited(editable_args(asked), form), by=by, note=note)
    elif verb == "each":
        done = decide(asked.approval_id, "answer", value=_one_by_one(asked, form), by=by, note=note)
    elif verb == "answer":
        done = decide(asked.approval_id, "answer", value=_answer(form), by=by, note=note)
    else:
        done = decide(asked.approval_id, verb, by=by, note=note)
    if not done.won:
        raise TooLate(too_late(done.approval))
    return done


def too_late(asked: Approval) -> str:
    """Who was first, and when."""
    if asked.status in ("open", "expired"):
        passed = f" passed at {moment(asked.deadline_at)}" if asked.deadline_at else " has passed"
        return f"The deadline of this question{passed}; nobody answered in time. Your click changed nothing."
    if asked.status == "approved" and not asked.decided_by:
        return (
            "Nobody answered in time, and its policy has approved this question. Your click changed nothing."
        )
    by = f" by {visible(asked.decided_by)}" if asked.decided_by else ""
    at = f" at {moment(asked.decided_at)}" if asked.decided_at else ""
    return f"This question was already {_DECIDED[asked.status]}{by}{at}. Your click changed nothing."


_DECIDED = {"approved": "approved", "rejected": "rejected", "cancelled": "cancelled with its run"}


def _one_by_one(asked: Approval, form: Mapping[str, str]) -> list[dict[str, Any]]:
    """A decision for each of several calls, as `decide` takes them."""
    review = review_of(asked.args)
    assert review is not None
    return [_one(action.name, form, n) for n, action in enumerate(review.actions)]


def _one(name: str, form: Mapping[str, str], n: int) -> dict[str, Any]:
    kind = form.get(f"do:{n}", "")
    message = form_text(form, f"message:{n}", MAX_NOTE)
    if kind != "edit":
        return {"type": kind} | ({"message": message} if message else {})
    try:
        args = json.loads(form.get(f"args:{n}", ""))
    except (ValueError, RecursionError):
        args = None
    if not isinstance(args, dict):
        raise Unfit(
            f"The arguments of {visible(name)} are no JSON object. The question is still open: go back and"
            " correct them."
        )
    return {"type": kind, "args": args}


def _answer(form: Mapping[str, str]) -> Any:
    given = form_text(form, "value", LONGEST_ANSWER)
    if not given:
        raise Unfit("The answer is empty. The question is still open: go back and write one.")
    if form.get("as_json") != "yes":
        return given
    try:
        return check_json(json.loads(given), path="value")
    except (ValueError, RecursionError):
        raise Unfit(
            "The answer was marked as JSON and is none. The question is still open: go back and correct it."
        ) from None


def form_text(form: Mapping[str, str], name: str, longest: int) -> str:
    """A text of the form, checked: not too long, and nothing in it that PostgreSQL cannot store."""
    given = form.get(name, "").replace("\r\n", "\n").strip()
    called = _NAMES.get(name.partition(":")[0], "text")
    if len(given) > longest:
        raise Unfit(
            f"The {called} has {count(len(given))} letters; {count(longest)} are possible. Nothing was"
            " changed: go back and shorten it."
        )
    check_json(given, path=called)
    return given


_NAMES = {"note": "note", "ref": "reference", "value": "answer", "message": "message"}
