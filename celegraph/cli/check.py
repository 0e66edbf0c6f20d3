"""A check's answer: what was looked at, how it stands, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "error", "skipped"]


@dataclass(frozen=True)
class Check:
    """One line of `celegraph doctor`.  `remedy` is empty when there is nothing to do."""

    name: str
    state: State
    says: str
    remedy: str = ""


def ok(name: str, says: str) -> Check:
    """Nothing to do."""
    return Check(name, "ok", says)


def warning(name: str, says: str, remedy: str) -> Check:
    """Runs go on, but later or with less safety than they could."""
    return Check(name, "warning", says, remedy)


def error(name: str, says: str, remedy: str = "") -> Check:
    """Runs do not go on, or not safely.  Errors of ours carry their remedy in what they say."""
    return Check(name, "error", says, remedy)


def skipped(name: str, remedy: str) -> Check:
    """Could not be looked at from here."""
    return Check(name, "skipped", "not checked", remedy)
