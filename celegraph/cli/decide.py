"""`celegraph decide APPROVAL VERB`: answer a question.  The first answer stands."""

from __future__ import annotations

import json
from typing import Any

import click

import celegraph
from celegraph.cli.approvals import described
from celegraph.cli.options import Settings, command
from celegraph.cli.shown import instant, say, say_json
from celegraph.ledger.values import clean_json
from celegraph.tasks.decide import Decided

_LONGEST_QUOTE = 200


def _json(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:  # also numbers and nestings that Python does not take
        value = value if len(value) <= _LONGEST_QUOTE else f"{value[:_LONGEST_QUOTE]}…"
        quoted = json.dumps(value, ensure_ascii=False)
        raise click.BadParameter(f"{value!r} is not JSON ({error}); text needs quotes: '{quoted}'") from None


@command("decide")
@click.argument("approval_id", metavar="APPROVAL")
@click.argument("verb", type=click.Choice(("approve", "reject", "edit", "answer")))
@click.option("--by", required=True, help="Who decides.")
@click.option("--note", help="Why, for the agent and the record.")
@click.option("--args", callback=_json, help="With edit: the arguments to change, as a JSON object.")
@click.option("--value", callback=_json, help="With answer: the answer, as JSON.")
@click.option("--ref", help="With happened as the answer to a doubt: the provider's reference of the act.")
@click.pass_context
def decide(
    ctx: click.Context,
    settings: Settings,
    approval_id: str,
    verb: str,
    by: str,
    note: str | None,
    args: Any,
    value: Any,
    ref: str | None,
) -> None:
    """Answer an open question; the first answer stands.

    A yes binds exactly what `celegraph approvals` shows: this tool with these arguments, once; with edit
    the arguments as changed. What silence means at the deadline is shown there too.

    Exit status 1 when somebody else, or the deadline, was first.
    """
    if args is not None and not isinstance(args, dict):
        raise click.BadParameter("must be a JSON object, as '{\"cents\": 1900}'", ctx, param_hint="--args")
    settings.install()
    decided = celegraph.decide(approval_id, verb, by=by, note=note, args=args, value=value, ref=ref)
    if settings.json:
        say_json(_as_json(decided))
    else:
        say(_sentence(decided))
    if not decided.won:
        ctx.exit(1)


def _as_json(decided: Decided) -> dict[str, Any]:
    return {
        "won": decided.won,
        "status": decided.status,
        "approval": described(decided.approval),
        "effect_status": decided.effect_status,
        "effect_result": clean_json(decided.effect_result),
    }


def _sentence(decided: Decided) -> str:
    approval = decided.approval
    effect = f"; its effect is {decided.effect_status}" if decided.effect_status else ""
    if decided.won:
        goes = "has ended" if approval.run_has_ended else "goes on"
        return f"{approval.approval_id} is {decided.status}; run {approval.run_id} {goes}{effect}"
    who = f" by {approval.decided_by}" if approval.decided_by else ""
    when = f" at {instant(approval.decided_at)}" if approval.decided_at else ""
    return f"too late: {approval.approval_id} was {decided.status}{who}{when}{effect}"
