"""`celegraph approvals`: what people are asked.  Prompt and arguments are shown: they are what is decided."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

import celegraph
from celegraph.cli.options import Settings, command
from celegraph.cli.shown import chosen, instant, say, say_json
from celegraph.ledger.approvals import Approval
from celegraph.ledger.canonical import decode_result
from celegraph.ledger.values import clean_json
from celegraph.tasks.asked import consequences, decided_before
from celegraph.tasks.resolve import ANSWERS

_STATUSES = ("open", "approved", "rejected", "expired", "cancelled")
_SHOWN = (
    "approval_id",
    "run_id",
    "agent",
    "kind",
    "status",
    "overdue",
    "prompt",
    "tool",
    "decision",
    "decided_by",
    "note",
    "created_at",
    "deadline_at",
    "decided_at",
    "asked",
    "silence",
    "idempotency_key",
    "effect_key",
)


@command("approvals")
@click.option("--status", type=click.Choice(_STATUSES), default="open", show_default=True)
@click.option("--all", "every", is_flag=True, help="Questions of every status.")
@click.option("--run", "run_id", metavar="RUN", help="Only questions of this run.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="At most so many.")
def approvals(settings: Settings, status: str, every: bool, run_id: str | None, limit: int) -> None:
    """List questions to people, the oldest first; open ones unless told otherwise.

    Of each: what is asked and by whom, exactly what an approval binds, how it was decided when it was
    asked before, and what follows from each answer and from silence.
    """
    settings.install()
    found = celegraph.list_approvals(status=None if every else status, run_id=run_id, limit=limit)
    if settings.json:
        say_json([described(approval) for approval in found])
        return
    if not found:
        say("no questions" if every else f"no {status} questions")
    for approval in found:
        say(_paragraph(approval))


def described(approval: Approval) -> dict[str, Any]:
    """The question as plain JSON."""
    return chosen(approval, _SHOWN) | {"args": shown_args(approval), "previous": _previous(approval)}


def shown_args(approval: Approval) -> Any:
    """The arguments as people read them: a Decimal as its digits, not as the ledger's tag."""
    # Only calls' arguments are in the ledger's encoding; a plain interrupt's value is as it came.
    is_call = approval.args_hash is not None or approval.kind == "drift"
    return clean_json(decode_result(approval.args)) if is_call else approval.args


def _previous(approval: Approval) -> Any:
    """What was decided on when it was asked before."""
    previous = approval.previous
    if not isinstance(previous, Mapping) or previous.get("args") is None:
        return previous
    return {**previous, "args": clean_json(decode_result(previous["args"]))}


def _paragraph(approval: Approval) -> str:
    lines = [f"{approval.approval_id}  {approval.status}  {approval.kind}  run {approval.run_id}"]
    lines += [f"  {line}" for line in approval.prompt.split("\n")]
    if approval.tool is not None:
        lines.append(f"  {approval.tool} {json.dumps(shown_args(approval), ensure_ascii=False)}")
    if before := decided_before(approval):
        lines.append(f"  asked again: the last time it was {before}")
    passed = " (passed)" if approval.overdue else ""
    node = approval.asked.get("node") if isinstance(approval.asked, Mapping) else None
    by = f" by {node}" if node else ""
    lines.append(
        f"  asked{by} {instant(approval.created_at)}, deadline {instant(approval.deadline_at)}{passed}"
    )
    if approval.status == "open" and not approval.overdue:
        lines += [f"  {one.answer}: {one.then}" for one in consequences(approval)]
        if approval.kind == "doubt":
            lines.append(f"  celegraph resolve {approval.idempotency_key} {'|'.join(ANSWERS)} --by NAME")
    if approval.decided_at is not None:
        by = f" by {approval.decided_by}" if approval.decided_by else ""
        note = f": {approval.note}" if approval.note else ""
        lines.append(f"  {approval.status} {instant(approval.decided_at)}{by}{note}")
    return "\n".join(lines) + "\n"
