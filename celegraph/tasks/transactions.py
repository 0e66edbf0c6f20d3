"""Joining the framework's open transaction, without knowing the framework.

A door (Django) registers how to find the transaction the caller is in; here it is only asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from celegraph.config import Config


@dataclass(frozen=True)
class OpenTransaction:
    """The caller's transaction on the ledger's own database, and how to run something after it."""

    connection: object
    on_commit: Callable[[Callable[[], object]], object]


_finders: dict[str, Callable[[Config], OpenTransaction | None]] = {}


def register(door: str, finder: Callable[[Config], OpenTransaction | None]) -> None:
    """A door's way to find the open transaction; asked at every start and decision."""
    _finders[door] = finder


def open_transaction(config: Config) -> OpenTransaction | None:
    """The caller's open transaction on the ledger's database, if a framework has one."""
    for finder in _finders.values():
        found = finder(config)
        if found is not None:
            return found
    return None
