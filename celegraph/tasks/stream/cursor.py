"""How far a reader has come, as a short text that it gets with every item and hands back to go on.

Events are numbered when they are written and seen when they are committed: an older one may appear behind
a newer one.  So the cursor holds the numbers of the last events read, and a reader looks that far back.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from celegraph.errors import CursorInvalid

# Events among which a late one is still found.  A decision in a host's transaction that stays open while
# its run goes on is the only one that is ever late by more than a moment.
_WINDOW = 48
_LONGEST = 4096


@dataclass(frozen=True)
class Cursor:
    """`seqs`: the newest events read, ascending.  `chunk`: epoch and number of the newest chunk read."""

    seqs: tuple[int, ...] = ()
    chunk: tuple[int, int] = (0, 0)

    @property
    def look_after(self) -> int:
        """Events with larger numbers are new, or are in `seqs`."""
        return self.seqs[0] - 1 if len(self.seqs) >= _WINDOW else 0

    def with_event(self, seq: int) -> Cursor:
        """After reading this event."""
        return replace(self, seqs=tuple(sorted((*self.seqs, seq)))[-_WINDOW:])

    def with_chunk(self, position: tuple[int, int]) -> Cursor:
        """After reading this chunk."""
        return replace(self, chunk=position)

    def text(self, run_id: str) -> str:
        """For the reader: letters, digits, - and _."""
        steps = [*self.seqs[:1], *(b - a for a, b in pairwise(self.seqs))]
        packed = json.dumps([_mark(run_id), *self.chunk, *steps], separators=(",", ":"))
        return base64.urlsafe_b64encode(zlib.compress(packed.encode())).decode().rstrip("=")


def parse_cursor(text: str, run_id: str) -> Cursor:
    """The cursor of an item of this very run; CursorInvalid."""
    try:
        mark, *numbers = _unpacked(text)
        epoch, number, *steps = _checked(numbers)
    except (ValueError, RecursionError, zlib.error) as error:
        raise CursorInvalid(run_id, "is not a cursor") from error
    if mark != _mark(run_id):
        raise CursorInvalid(run_id, "is of another run")
    return Cursor(tuple(accumulate(steps)), (epoch, number))


def _unpacked(text: str) -> Sequence[object]:
    if len(text) > _LONGEST:
        raise ValueError
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    unpacker = zlib.decompressobj()
    packed = unpacker.decompress(raw, _LONGEST)  # no more, whatever it claims to hold
    if unpacker.unconsumed_tail:
        raise ValueError
    found: Sequence[object] = json.loads(packed)
    if not isinstance(found, list):
        raise ValueError
    return found


def _checked(numbers: Sequence[object]) -> list[int]:
    found = [n for n in numbers if type(n) is int and 0 <= n < 2**62]
    if len(found) < len(numbers) or len(found) > _WINDOW + 2:
        raise ValueError
    return found


def _mark(run_id: str) -> str:
    # An id that no run can have is looked for all the same, and not found.
    return hashlib.sha256(run_id.encode(errors="backslashreplace")).hexdigest()[:8]
