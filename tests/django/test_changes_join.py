"""What people do to runs belongs to the transaction they do it in, as starts and decisions do."""

from __future__ import annotations

from tests.django.support import Project

BEFORE = {
    "reject and cancel": ["waiting", "pending", False],
    "pause": ["waiting", "pending", False],
    "resume": ["paused", "pending", False],
    "retry": ["failed", "pending", False],
    "release": ["quarantined", "pending", False],
    "resolve": ["waiting", "pending", False],
    "confirm": ["waiting", "pending", False],
    "fail": ["waiting", "pending", False],
}
AFTER = {
    "reject and cancel": ["cancelled", "pending", False],
    "pause": ["paused", "pending", False],
    "resume": ["ready", "pending", True],
    "retry": ["ready", "pending", True],
    "release": ["ready", "pending", True],
    "resolve": ["waiting", "sent", False],
    "confirm": ["waiting", "confirmed", False],
    "fail": ["waiting", "failed", False],
}


def test_a_rollback_undoes_every_change_and_nobody_is_rung(migrated: Project) -> None:
    facts = migrated.scene("change_scenes.changes", "rollback")

    assert facts == {"inside": BEFORE, "after": BEFORE, "orders": 0}


def test_a_commit_keeps_every_change_and_rings_only_then(migrated: Project) -> None:
    """One block decides on a run and cancels it: with a second connection it would wait for itself."""
    facts = migrated.scene("change_scenes.changes", "commit")

    assert facts == {"inside": BEFORE, "after": AFTER, "orders": 1}
