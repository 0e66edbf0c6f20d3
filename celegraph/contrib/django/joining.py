"""Finds the transaction the caller is in, if it is one on the ledger's own database."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from celegraph.config import Config
from celegraph.ledger.borrow import holds_ledger
from celegraph.tasks.transactions import OpenTransaction


def open_transaction(config: Config) -> OpenTransaction | None:
    """The open `atomic` block (or transaction managed by hand) of this thread that a row can join.

    None: there is none, or it is on another database; then the row is committed by itself.
    """
    for wrapper in connections.all(initialized_only=True):
        if _in_transaction(wrapper) and _holds_ledger(wrapper, config):
            # As the ORM would: in a block that can only be rolled back nothing may be started.
            wrapper.validate_no_broken_transaction()
            return OpenTransaction(wrapper.connection, _on_commit(wrapper))
    return None


def _in_transaction(wrapper: BaseDatabaseWrapper) -> bool:
    if wrapper.vendor != "postgresql" or wrapper.connection is None:
        return False
    return wrapper.in_atomic_block or not wrapper.get_autocommit()


def _on_commit(wrapper: BaseDatabaseWrapper) -> Callable[[Callable[[], object]], object]:
    if wrapper.in_atomic_block:
        return partial(transaction.on_commit, using=wrapper.alias)
    # set_autocommit(False): Django does not see the commit.  The sweep does, a second later.
    return lambda _ring: None


# Found to be the same database.  Only these are kept: while a server restarts, "no" may be wrong.
_same: set[tuple[object, ...]] = set()


def _holds_ledger(wrapper: BaseDatabaseWrapper, config: Config) -> bool:
    where = (
        *(str(wrapper.settings_dict[key]) for key in ("HOST", "PORT", "NAME")),
        str(wrapper.settings_dict["OPTIONS"].get("service")),
        config.database_url,
    )
    if where in _same:
        return True
    # Asked, not compared: Django may go through PgBouncer and the ledger past it, to one database.
    if holds_ledger(wrapper.connection, config):
        _same.add(where)
        return True
    return False
