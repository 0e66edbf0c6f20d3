"""Answers to doubts: what a person or the provider itself says about a call nobody saw the end of."""

from __future__ import annotations

from typing import Any, Literal

from celegraph.errors import DecisionRefused, LedgerError, NotResolvable
from celegraph.ledger import doubts, effects
from celegraph.ledger.approvals import Approval
from celegraph.ledger.canonical import encode_result
from celegraph.ledger.connect import AnyConn
from celegraph.ledger.doubts import Resolution
from celegraph.ledger.effect_row import Effect
from celegraph.ledger.values import MAX_NOTE, check_note
from celegraph.tasks import transactions
from celegraph.tasks.installation import installation
from celegraph.tasks.ring import wake_and_ring

Answer = Literal["happened", "did_not_happen", "skip"]
ANSWERS: tuple[Answer, ...] = ("happened", "did_not_happen", "skip")


def resolve_effect(
    key: str,
    answer: Answer,
    *,
    ref: str | None = None,
    by: str,
    note: str | None = None,
    result: Any = None,
    connection: object = None,
) -> Effect:
    """A person's answer to "did it happen?"; the run goes on with it, unless it has ended.

    "happened": never called again, `result` (default: `ref`) is what the agent gets.  "did_not_happen":
    called again.  "skip": not called, the agent sees `EffectSkipped`.  Raises `NotResolvable`.  Joins
    transactions as `decide` does.
    """
    inst = installation()
    with transactions.writing(inst.config, connection) as (conn, after_commit):
        run_id = _resolve(conn, key, answer, ref=ref, by=by, note=note, result=result)
        effect = effects.get_effect(conn, key)
        after_commit(lambda: wake_and_ring(inst, run_id, "doubt answered"))
    return effect


def confirm_effect(
    key: str | None = None,
    *,
    provider_ref: str | None = None,
    result: Any = None,
    connection: object = None,
) -> Effect:
    """The provider says that it happened (a webhook); believed at any time, also before the call's reply.

    `key` finds the effect, and `provider_ref` is then kept with it; without a key the reference finds it,
    once the call has returned.  `EffectNotFound` otherwise: answer the webhook with an error, so that it
    comes again.  `result` is what the agent gets if the process died before the reply; a reply that comes
    later fills in what the webhook did not bring.  Joins transactions as `decide` does.
    """
    return _provider_says("confirmed", key, provider_ref, result, None, connection)


def fail_effect(
    key: str | None = None, *, provider_ref: str | None = None, reason: str, connection: object = None
) -> Effect:
    """The provider says that it did not happen and will not; the agent sees `EffectFailed`.

    `NotResolvable` when the call has returned or was confirmed: that something is taken back later is
    another fact, for the agent's own code.  Joins transactions as `decide` does.
    """
    return _provider_says("failed", key, provider_ref, None, reason, connection)


def resolve_question(
    conn: AnyConn, asked: Approval, verb: str, value: Any, *, ref: str | None, by: str, note: str | None
) -> bool:
    """`decide` on a doubt: the answer is one of happened, did_not_happen, skip.  False: no longer open."""
    if verb != "answer" or value not in ANSWERS:
        raise DecisionRefused(
            asked.approval_id,
            f"this asks whether {asked.tool!r} happened: decide(id, 'answer', value=...) with one of"
            f" {', '.join(ANSWERS)}",
        )
    if asked.status != "open":
        return False
    assert asked.idempotency_key is not None
    _resolve(conn, asked.idempotency_key, value, ref=ref, by=by, note=note, result=None, attempts=asked.ask)
    return True


def _resolve(
    conn: AnyConn,
    key: str,
    answer: Answer,
    *,
    ref: str | None,
    by: str,
    note: str | None,
    result: Any,
    attempts: int | None = None,
) -> str:
    if answer not in ANSWERS:
        raise LedgerError(f"unknown answer {answer!r}; use one of {', '.join(ANSWERS)}")
    error: dict[str, Any] | None = None
    if answer != "happened":
        error = {"type": "celegraph.DidNotHappen", "by": by, "note": note}
        if answer == "skip":
            error |= {"type": "celegraph.Skipped", "skipped": True}
    resolution = Resolution(
        status="sent" if answer == "happened" else "failed",
        by=by,
        ref=ref,
        note=note,
        result=encode_result(result if result is not None else ref) if answer == "happened" else None,
        error=error,
        decision={"verb": "answer", "value": answer},
        attempts=attempts,
    )
    run_id = doubts.resolve(conn, key, resolution)
    if run_id is None:
        raise _not_resolvable(effects.get_effect(conn, key), answer, attempts)
    return run_id


def _not_resolvable(effect: Effect, answer: str, asked: int | None = None) -> NotResolvable:
    if effect.done:
        problem = f"it is {effect.status}: what has happened cannot be undone here"
    elif effect.status != "pending":
        problem = f"it is {effect.status}"
    elif asked not in (None, effect.attempts):
        problem = f"call number {asked} was asked about, and number {effect.attempts} was made since"
    else:
        problem = (
            f"a call may still be under way for {effect.doubt_in_s or 0:.0f} s; until then only"
            " 'happened' is believed"
        )
    return NotResolvable(effect.idempotency_key, answer, status=effect.status, problem=problem)


def _provider_says(
    status: str, key: str | None, ref: str | None, result: Any, reason: str | None, connection: object
) -> Effect:
    inst = installation()
    if key is None and ref is None:
        raise LedgerError("give the effect's key or its provider_ref")
    with transactions.writing(inst.config, connection) as (conn, after_commit):
        found = key if key is not None else effects.key_of_ref(conn, ref or "")
        resolution = Resolution(
            status=status,
            by="provider",
            ref=ref,
            result=encode_result(result),
            error=_provider_says_no(reason) if status == "failed" else None,
            certain=True,
            decision={
                "verb": "answer",
                "value": "happened" if status == "confirmed" else "did_not_happen",
            },
        )
        run_id = doubts.resolve(conn, found, resolution)
        effect = effects.get_effect(conn, found)
        if run_id is None and effect.status != status:
            raise _not_resolvable(effect, status)
        if run_id is not None:
            after_commit(lambda: wake_and_ring(inst, run_id, "doubt answered"))
    return effect


def _provider_says_no(reason: str | None) -> dict[str, Any]:
    # Cut: what a provider has said is not refused for its length.
    said = reason[:MAX_NOTE] if isinstance(reason, str) else reason
    return {"type": "celegraph.ProviderSaysNo", "message": check_note(said, path="reason"), "final": True}
