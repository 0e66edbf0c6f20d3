"""Which recorded call is this one?  Finds the slot of a call before anything is decided about it.

Three kinds of names, told apart by their first character: "=" an author's own name, "#" the n-th call
of the node itself, "~" a call made beside others in no order.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from celegraph.ledger.effect_row import Effect


@dataclass(frozen=True)
class Slot:
    """`name` within (run, step, tool).  `recorded` is the row found there; `drifted` when its arguments
    are others than the call's."""

    name: str
    recorded: Effect | None = None
    drifted: bool = False


class Slots:
    """The slots of one tool in one step, as one pass through the node finds and claims them.

    Made of the rows that were there before the pass.  Used on the loop and without awaiting in between:
    two parallel calls must not get one slot.
    """

    def __init__(self, rows: Collection[Effect]):
        self._last: dict[str, int] = {}
        for row in rows:
            prefix, number = _parts(row.slot)
            self._last[prefix] = max(self._last.get(prefix, 0), number)
        # Unclaimed so far, counted ones first and in their order.
        self._free = {e.slot: e for e in sorted(rows, key=_order) if e.slot[0] != "="}

    def named(self, name: str, recorded: Effect | None, hashed: str) -> Slot:
        """The author's own name: the same call wherever it is reached, also twice in one pass."""
        drifted = recorded is not None and recorded.args_hash != hashed
        return Slot(f"={name}", recorded, drifted)

    def claim(self, hashed: str, *, ordered: bool) -> Slot:
        """The slot of a call that has no name of its own."""
        # Equal arguments in any unclaimed slot: the same call, perhaps in another order.
        same = next((e for e in self._free.values() if e.args_hash == hashed), None)
        if same is not None:
            return self._take(same)
        if not ordered:
            return self.beside(hashed)
        # An unreleased intent is no fact yet: a pass that does not want it drops it.
        missing = next((e for e in self._free.values() if e.slot[0] == "#" and not e.unreleased), None)
        if missing is not None:
            # This pass wants a call that an earlier pass did not make, while one that was made is missing.
            return self._take(missing, drifted=True)
        return self._new("#")

    def beside(self, hashed: str) -> Slot:
        """A new slot for a call without an order; equal arguments find it again on later passes."""
        return self._new(f"~{hashed[:16]}.")

    def _take(self, row: Effect, *, drifted: bool = False) -> Slot:
        del self._free[row.slot]
        return Slot(row.slot, row, drifted)

    def _new(self, prefix: str) -> Slot:
        number = self._last[prefix] = self._last.get(prefix, 0) + 1
        return Slot(f"{prefix}{number}")


def _parts(slot: str) -> tuple[str, int]:
    """The prefix a slot's number stands behind, and the number (0: it has none)."""
    if slot[0] == "#":
        return "#", int(slot[1:])
    if slot[0] == "~":
        prefix, _, number = slot.rpartition(".")
        return f"{prefix}.", int(number)
    return slot, 0


def _order(row: Effect) -> tuple[bool, int]:
    return row.slot[0] != "#", _parts(row.slot)[1]
