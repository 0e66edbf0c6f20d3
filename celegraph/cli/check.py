"""A check's answer: what was looked at, how it stands, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

State = Literal["ok", "warning", "error", "skipped"]


@dataclass(frozen=True)
class Check:
    """One line of `celegraph doctor`.  `remedy` is empty when there is nothing to do.

    `numbers` are for monitors, which would otherwise have to read them out of the words.
    """

    name: str
    state: State
    says: str
    remedy: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


def ok(name: str, says: str, **numbers: float) -> Check:
    """Nothing to do."""
    return Check(name, "ok", says, numbers=numbers)


def warning(name: str, says: str, remedy: str, **numbers: float) -> Check:
    """Runs go on, but later or with less safety than they could."""
    return Check(name, "warning", says, remedy, numbers)


def error(name: str, says: str, remedy: str = "", **numbers: float) -> Check:
    """Runs do not go on, or not safely.  Errors of ours carry their remedy in what they say."""
    return Check(name, "error", says, remedy, numbers)


def skipped(name: str, remedy: str) -> Check:
    """Could not be looked at from here."""
    return Check(name, "skipped", "not checked", remedy)
