"""Which recorded call is this one?  Finds the slot of a call before anything is decided about it."""

from __future__ import annotations

from dataclasses import dataclass

from celegraph.agent.attempt import Attempt
from celegraph.agent.effect import Declaration
from celegraph.agent.place import Place
from celegraph.errors import EffectDrift
from celegraph.ledger.effects import Effect


@dataclass(frozen=True)
class Slot:
    """`name` within (run, step, tool); `recorded` is the row found there, if any."""

    name: str
    recorded: Effect | None


def find_slot(attempt: Attempt, place: Place, decl: Declaration, hashed: str, named: str | None) -> Slot:
    """Claim the slot of this call for this pass through the node.

    Call it on the loop and without awaiting in between: two parallel calls must not get one slot.
    Raises `EffectDrift` when the recorded call has other arguments and may not stand for this one.
    """
    rows = attempt.effects.at(place.step, decl.tool)
    claimed = attempt.execution(place.execution).claimed
    if named is not None:
        return _named(rows, claimed, decl, hashed, named)
    return _counted(rows, claimed, decl, hashed)


def _named(rows: list[Effect], claimed: set[str], decl: Declaration, hashed: str, named: str) -> Slot:
    # The prefix keeps an author's "1" apart from the first counted call.
    name = f"={named}"
    claimed.add(f"{decl.tool}:{name}")
    found = next((e for e in rows if e.slot == name), None)
    if found is not None and found.args_hash != hashed and decl.on_drift == "fail":
        raise EffectDrift(decl.tool, found.idempotency_key)
    return Slot(name, found)


def _counted(rows: list[Effect], claimed: set[str], decl: Declaration, hashed: str) -> Slot:
    counted = sorted((e for e in rows if e.slot.startswith("#")), key=lambda e: int(e.slot[1:]))
    free = [e for e in counted if f"{decl.tool}:{e.slot}" not in claimed]
    # Equal arguments in any unclaimed slot: the same call, perhaps in another order.
    same = next((e for e in free if e.args_hash == hashed), None)
    if same is not None:
        claimed.add(f"{decl.tool}:{same.slot}")
        return Slot(same.slot, same)
    if free:
        # This pass wants a call that an earlier pass did not make, while one that was made is missing.
        raise EffectDrift(decl.tool, free[0].idempotency_key)
    taken = {int(c.rpartition("#")[2]) for c in claimed if c.startswith(f"{decl.tool}:#")}
    number = max(taken | {int(e.slot[1:]) for e in counted}, default=0) + 1
    claimed.add(f"{decl.tool}:#{number}")
    return Slot(f"#{number}", None)
