"""Notices that wait in the outbox.  They are enqueued by the statements that open and move questions."""

from __future__ import annotations

from celegraph.ledger.connect import Conn
from celegraph.ledger.queries import load

Q = load("notices")


def due(conn: Conn) -> list[str]:
    """The tools ("notify:" and the channel's name) that have something to tell now."""
    # Parameters, though there are none: the query's percent sign is written for them.
    return [str(row["tool"]) for row in conn.execute(Q.due, {}).fetchall()]
