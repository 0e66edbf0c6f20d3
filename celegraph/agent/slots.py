"""Which recorded call is this one?  Finds the slot of a call before anything is decided about it.

Three kinds of names, told apart by their first character: "=" an author's own name or the model's tool
call, "#" the n-th call of the node itself, "~" a call made beside others in no order.
"""

from __future__ import annotations

from dataclasses import dataclass

from celegraph.ledger.effects import Effect


@dataclass(frozen=True)
class Slot:
    """`name` within (run, step, tool).  `recorded` is the row found there; `drifted` when its arguments
    are others than the call's."""

    name: str
    recorded: Effect | None = None
    drifted: bool = False


class Taken:
    """The slots of one tool in one step that this pass through the node has claimed."""

    def __init__(self, claimed: set[tuple[str, str, str]], step: str, tool: str):
        self._claimed = claimed
        self._step = step
        self._tool = tool

    def __contains__(self, slot: str) -> bool:
        return (self._step, self._tool, slot) in self._claimed

    def claim(self, slot: str, recorded: Effect | None = None, *, drifted: bool = False) -> Slot:
        """Claim `slot` for this pass."""
        self._claimed.add((self._step, self._tool, slot))
        return Slot(slot, recorded, drifted)

    def next(self, prefix: str, rows: list[Effect]) -> str:
        """The first number behind `prefix` that neither this pass nor an earlier one has used."""
        mine = {s for step, tool, s in self._claimed if (step, tool) == (self._step, self._tool)}
        used = [int(s[len(prefix) :]) for s in mine | {e.slot for e in rows} if s.startswith(prefix)]
        return f"{prefix}{max(used, default=0) + 1}"


def find_slot(rows: list[Effect], taken: Taken, hashed: str, *, named: str | None, ordered: bool) -> Slot:
    """Claim the slot of this call for this pass through the node.

    Call it on the loop and without awaiting in between: two parallel calls must not get one slot.
    """
    if named is not None:
        found = next((e for e in rows if e.slot == f"={named}"), None)
        return taken.claim(f"={named}", found, drifted=found is not None and found.args_hash != hashed)
    free = sorted((e for e in rows if e.slot[0] in "#~" and e.slot not in taken), key=_order)
    # Equal arguments in any unclaimed slot: the same call, perhaps in another order.
    same = next((e for e in free if e.args_hash == hashed), None)
    if same is not None:
        return taken.claim(same.slot, same)
    if not ordered:
        return taken.claim(taken.next(f"~{hashed[:16]}.", rows))
    # An unreleased intent is no fact yet: a pass that does not want it drops it.
    missing = next((e for e in free if e.slot[0] == "#" and not e.unreleased), None)
    if missing is not None:
        # This pass wants a call that an earlier pass did not make, while one that was made is missing.
        return taken.claim(missing.slot, missing, drifted=True)
    return taken.claim(taken.next("#", rows))


def another_slot(rows: list[Effect], taken: Taken, hashed: str) -> Slot:
    """A person allowed the drifted call beside the recorded one: it gets a slot of its own.

    Equal arguments find it again on later passes.
    """
    return taken.claim(taken.next(f"~{hashed[:16]}.", rows))


def _order(row: Effect) -> tuple[bool, int]:
    """Counted slots first, by number."""
    return row.slot[0] != "#", int(row.slot.rpartition("." if row.slot[0] == "~" else "#")[2])
