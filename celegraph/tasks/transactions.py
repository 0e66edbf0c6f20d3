"""Writing the ledger in the right transaction: the caller's if there is one, else one of our own.

A door (Django) registers how to find the transaction the caller is in; here it is only asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from celegraph.config import Config
from celegraph.ledger.borrow import borrowed
from celegraph.ledger.connect import AnyConn
from celegraph.ledger.pool import ledger

Act = Callable[[], object]


@dataclass(frozen=True)
class OpenTransaction:
    """The caller's transaction on the ledger's own database, and how to run something after it."""

    connection: object
    on_commit: Callable[[Act], object]


_finders: dict[str, Callable[[Config], OpenTransaction | None]] = {}


def register(door: str, finder: Callable[[Config], OpenTransaction | None]) -> None:
    """A door's way to find the open transaction; asked at every write of the web side."""
    _finders[door] = finder


def open_transaction(config: Config) -> OpenTransaction | None:
    """The caller's open transaction on the ledger's database, if a framework has one."""
    for finder in _finders.values():
        found = finder(config)
        if found is not None:
            return found
    return None


@contextmanager
def writing(config: Config, connection: object = None) -> Iterator[tuple[AnyConn, Callable[[Act], object]]]:
    """A session to write with, and `after_commit(act)` for what may happen only once that is durable.

    `connection`, else the framework's open transaction, else a session of our own.  After the commit of
    a given `connection` nobody calls us: the acts are dropped, and the sweep does what they would have done.
    Every write goes through here.  One that did not join would wait for ever for the row locks of the very
    transaction it was called in.
    """
    joined = None if connection is not None else open_transaction(config)
    host = connection if joined is None else joined.connection
    acts: list[Act] = []
    with ledger(config) if host is None else borrowed(host, config.schema_name) as conn:
        yield conn, acts.append
    for act in acts:
        if joined is not None:
            joined.on_commit(act)
        elif host is None:
            act()
