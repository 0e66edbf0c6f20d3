"""Which call is this?  Checks the arguments, finds the slot, and answers drift before anything is called."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from celegraph.agent.attempt import Attempt
from celegraph.agent.caller import Caller
from celegraph.agent.declaration import Declaration
from celegraph.agent.questions import answered_drift, ask_about_drift
from celegraph.agent.slots import Slot
from celegraph.agent.unknown import renamed_task
from celegraph.config import Config
from celegraph.errors import EffectDrift
from celegraph.ledger import effects, remarks
from celegraph.ledger.canonical import canonical_json, check_size, decode_result, encode_result
from celegraph.ledger.effect_row import Effect, Reservation
from celegraph.ledger.keys import effect_key, hash_of


@dataclass(frozen=True)
class Request:
    """A call that an author's code wants, with its identity worked out."""

    attempt: Attempt
    decl: Declaration
    args: dict[str, Any]
    reservation: Reservation
    recorded: Effect | None

    async def read_again(self) -> Effect:
        """The row as it is now; what is true decides, not what was read before."""
        row = await effects.state(self.attempt.pen, self.reservation.key)
        self.attempt.effects.put(row)
        return row


async def identify(caller: Caller, decl: Declaration, args: dict[str, Any]) -> Request:
    """Check the call and find out which one it is; its slot is claimed for this pass."""
    attempt = caller.attempt
    attempt.check_open()
    if caller.place.caller is not None:
        acted = [effect for effect in attempt.effects if effect.mode != "read"]
        if (name := renamed_task(caller.place.step, caller.place.node, acted)) is not None:
            raise await attempt.stop_for_code(
                f"@task {name!r} has acted where @task {caller.place.node!r} is called now"
            )
    body = canonical_json(args, path="args")
    check_size(body, attempt.config.max_value_bytes, "args")
    hashed = hash_of(body)
    # From here to the reservation nothing is awaited: parallel calls must not find the same slot free.
    slots = attempt.slots(caller.place.execution, caller.step, decl.tool)
    if caller.slot is not None:
        row = attempt.effects.named(caller.step, decl.tool, caller.slot)
        found = slots.named(caller.slot, row, hashed)
    else:
        found = slots.claim(hashed, ordered=caller.ordered)
    if found.drifted:
        found = await _drift(caller, decl, args, hashed, found)
    return _request(caller, decl, args, hashed, found)


async def _drift(
    caller: Caller,
    decl: Declaration,
    args: dict[str, Any],
    hashed: str,
    found: Slot,
) -> Slot:
    """The recorded call of this slot has other arguments.  Never a silent second call."""
    attempt, recorded = caller.attempt, found.recorded
    assert recorded is not None
    named = caller.slot is not None or caller.tool_call is not None
    policy = decl.on_drift or ("keep" if named else "ask")
    if policy == "fail":
        await remarks.record_drift(attempt.pen, recorded, attempt.epoch, "fail", encode_result(args))
        raise EffectDrift(decl.tool, recorded.idempotency_key)
    if policy == "ask":
        answer = answered_drift(attempt, recorded, hashed)
        if answer is None:
            raise await attempt.stop(ask_about_drift(attempt, recorded, encode_result(args), hashed))
        if answer == "perform":
            return attempt.slots(caller.place.execution, caller.step, decl.tool).beside(hashed)
    await remarks.record_drift(attempt.pen, recorded, attempt.epoch, "keep", encode_result(args))
    return found


def _request(caller: Caller, decl: Declaration, args: dict[str, Any], hashed: str, slot: Slot) -> Request:
    attempt, row = caller.attempt, slot.recorded
    encoded = encode_result(args, path="args")
    if row is not None:
        args, encoded = _recorded_body(row, args, encoded), row.args
    key = (
        row.idempotency_key
        if row is not None
        else effect_key(attempt.run_id, caller.step, decl.tool, slot.name, hashed)
    )
    reservation = Reservation(
        key=key,
        run_id=attempt.run_id,
        epoch=attempt.epoch,
        step=caller.step,
        tool=decl.tool,
        slot=slot.name,
        args_hash=row.args_hash if row is not None else hashed,
        args=encoded,
        owner=f"epoch {attempt.epoch}",
        horizon=attempt.config.call_window + call_timeout(attempt.config, decl),
    )
    return Request(attempt, decl, args, reservation, row)


def _recorded_body(row: Effect, args: dict[str, Any], encoded: Any) -> dict[str, Any]:
    """The body fixed at the first claim: a provider compares it byte by byte with the same key's first.

    Equal by value is not equal by bytes (1 and 1.0); classes, however, are stored as plain dicts, and
    then the caller's own objects, equal by value, are the better copy.
    """
    recorded = decode_result(row.args)
    plain = decode_result(encoded) == args
    return recorded if plain and isinstance(recorded, dict) else args


def call_timeout(config: Config, decl: Declaration) -> timedelta:
    """How long one call may take, by its declaration or the configuration."""
    return decl.timeout or config.effect_timeout
