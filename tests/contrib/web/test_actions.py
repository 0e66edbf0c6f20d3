"""A run's page offers what can be done to the run where it is, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from celegraph.contrib.web.run_actions import possible_verbs
from celegraph.ledger.runs import Run

_AT = datetime(2024, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "asked", "verbs"),
    [
        ("ready", {}, ["cancel", "pause"]),
        ("running", {}, ["cancel", "pause"]),
        ("running", {"pause_requested_at": _AT}, ["cancel", "resume"]),
        ("running", {"cancel_requested_at": _AT}, []),
        ("waiting", {}, ["cancel", "pause"]),
        ("paused", {"pause_requested_at": _AT}, ["cancel", "resume"]),
        ("failed", {}, ["retry"]),
        ("quarantined", {}, ["cancel", "release"]),
        ("finished", {}, []),
        ("cancelled", {"cancel_requested_at": _AT}, []),
    ],
)
def test_the_verbs_are_those_that_fit(status: str, asked: dict[str, Any], verbs: list[str]) -> None:
    terminal = status in ("finished", "failed", "cancelled")
    facts = {"cancel_requested_at": None, "pause_requested_at": None, "terminal": terminal, **asked}

    assert possible_verbs(cast(Run, SimpleNamespace(status=status, **facts))) == verbs
