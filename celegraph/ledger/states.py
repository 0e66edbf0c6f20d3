"""The chart of a run: which status may follow which, and through which verb.

`docs/state_machine.md` and the table's CHECK say the same; a test compares the three.
"""

from __future__ import annotations

from typing import Final, Literal

Status = Literal["ready", "running", "waiting", "paused", "finished", "failed", "cancelled", "quarantined"]

STATUSES: Final[tuple[Status, ...]] = (
    "ready",
    "running",
    "waiting",
    "paused",
    "finished",
    "failed",
    "cancelled",
    "quarantined",
)
EFFECT_STATUSES: Final = ("pending", "sent", "confirmed", "failed")
APPROVAL_STATUSES: Final = ("open", "approved", "rejected", "expired", "cancelled")
TERMINAL: Final[frozenset[Status]] = frozenset({"finished", "failed", "cancelled"})

ARROWS: Final[dict[str, tuple[frozenset[Status], Status]]] = {
    "admit": (frozenset(), "ready"),
    "begin": (frozenset({"ready"}), "running"),
    "finish": (frozenset({"running"}), "finished"),
    "wait": (frozenset({"running"}), "waiting"),
    "sleep": (frozenset({"running"}), "ready"),
    "drain": (frozenset({"running"}), "ready"),
    "abandon": (frozenset({"running"}), "ready"),
    "fail": (frozenset({"running"}), "failed"),
    "recover": (frozenset({"running"}), "ready"),
    "quarantine": (frozenset({"running"}), "quarantined"),
    "wake": (frozenset({"waiting", "ready"}), "ready"),
    "cancel": (frozenset({"running", "ready", "waiting", "paused", "quarantined"}), "cancelled"),
    "pause": (frozenset({"ready", "waiting"}), "paused"),
    "resume": (frozenset({"paused"}), "ready"),
    "retry": (frozenset({"failed"}), "ready"),
    "release": (frozenset({"quarantined"}), "ready"),
}
