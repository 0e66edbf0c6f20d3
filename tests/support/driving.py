"""What the in-process tests do to a driven run from outside."""

from __future__ import annotations

from typing import Any

from celegraph.ledger.connect import Conn, connect
from celegraph.ledger.pool import ledger
from celegraph.ledger.sweep import sweep_once
from celegraph.testing.driver import Driven
from tests.support.waiting import eventually


def connection(driven: Driven) -> Conn:
    """A connection to the run's ledger; the caller closes it."""
    return connect(driven.installation.config)


def sweep(driven: Driven, *, started: bool = False) -> None:
    """One sweep that rings nobody."""
    with ledger(driven.installation.config) as conn:
        sweep_once(conn, driven.installation.config, started=started)


def taken_over(driven: Driven) -> Driven:
    """Drive on a run whose process has just died; its lock goes with its connection, in a moment."""

    def moved() -> bool:
        return driven.status != "running" or driven.resume().status != "running"

    eventually(moved)
    return driven.resume()


def kinds(driven: Driven) -> list[str]:
    """The kinds of the run's events, in order."""
    return [event.kind for event in driven.events]


def event(driven: Driven, kind: str) -> dict[str, Any]:
    """The data of the last event of this kind."""
    return dict([e.data for e in driven.events if e.kind == kind][-1])
