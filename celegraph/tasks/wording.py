"""A notice in words: subject, text and HTML, from templates that a host may replace one by one.

A host's directory is looked into first: for `reminder.txt`, then `notice.txt`, then ours.  Ours show the
prompt, the agent, the deadline and the link; the arguments may be a customer's, and are shown only by a
template that asks for them (`approval.args`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    PackageLoader,
    StrictUndefined,
    select_autoescape,
)

from celegraph.tasks.asked import on_silence
from celegraph.tasks.notice import Notice
from celegraph.tasks.words import visible

_LONGEST_SUBJECT = 200
_HEADINGS = {
    "opened": "needs an answer",
    "reminder": "still needs an answer",
    "escalation": "needs your answer",
    "again": "still needs your answer",
}


@dataclass(frozen=True)
class Words:
    """What a person reads."""

    subject: str
    text: str
    html: str


def worded(notice: Notice, templates: str | None = None) -> Words:
    """The notice in words; jinja2's TemplateError when a host's template is wrong."""
    environment = _environment(templates)
    values = _values(notice)

    def render(ending: str) -> str:
        found = environment.select_template([f"{notice.what}.{ending}", f"notice.{ending}"])
        return found.render(values)

    # A line break in a subject would be another header.
    subject = " ".join(render("subject").split())[:_LONGEST_SUBJECT]
    return Words(subject, render("txt"), render("html"))


def _values(notice: Notice) -> Mapping[str, Any]:
    asked = notice.approval
    return {
        "notice": notice,
        "approval": asked,
        "agent": asked.agent,
        "prompt": visible(asked.prompt),
        "deadline": asked.deadline_at,
        "link": notice.link,
        "to": notice.to,
        "heading": _HEADINGS.get(notice.what) or _closed(asked.status),
        "silence": on_silence(asked),
    }


def _closed(status: str) -> str:
    if status == "open":
        return "is past its deadline and still needs an answer"
    return f"was not answered in time ({status})"


@lru_cache(maxsize=16)
def _environment(templates: str | None) -> Environment:
    ours = PackageLoader("celegraph.tasks", "templates")
    loader = ChoiceLoader([FileSystemLoader(templates), ours]) if templates else ours
    return Environment(
        loader=loader,
        autoescape=select_autoescape(("html",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
