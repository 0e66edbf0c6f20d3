"""What the database says about its own fitness and about work that piles up.  Read by `doctor`."""

from __future__ import annotations

from dataclasses import dataclass

from celegraph.ledger.connect import Conn
from celegraph.ledger.queries import load

Q = load("health")

OLDEST_POSTGRES = 140_000  # server_version_num of 14.0


@dataclass(frozen=True)
class Server:
    """The PostgreSQL behind the URL."""

    version: str
    number: int

    @property
    def supported(self) -> bool:
        """PostgreSQL 14 or newer."""
        return self.number >= OLDEST_POSTGRES


@dataclass(frozen=True)
class Backlog:
    """Runs that are due and not begun.  `oldest_s` is None when there are none.

    `running`: runs that some worker is at; none of them and an old due one means that nobody takes any.
    """

    runs: int
    oldest_s: float | None
    ring_lag_s: float
    never_rung: int
    running: int


def server(conn: Conn) -> Server:
    """Name and number of the server's version."""
    row = conn.execute(Q.server).fetchone()
    assert row is not None
    return Server(**row)


def backlog(conn: Conn) -> Backlog:
    """How much work is waiting for a worker at this moment."""
    row = conn.execute(Q.backlog).fetchone()
    assert row is not None
    return Backlog(**row)
