"""Keeps Django's own connections usable in worker threads, and ours out of a test runner's way."""

from __future__ import annotations

import sys
from typing import Any

from asgiref.sync import SyncToAsync
from django.db import close_old_connections
from django.db.backends.base.base import NO_DB_ALIAS

from celegraph.ledger.pool import close_pools


def clean_node_thread() -> None:
    """What Django does before and after a request: expired and broken connections are closed."""
    close_old_connections()


def clean_async_orm() -> None:
    """The same for async nodes, whose ORM calls all run in one thread of asgiref's."""
    # Queued, not awaited: a call that hangs there must not hold up the attempt.
    SyncToAsync.single_thread_executor.submit(close_old_connections)


def let_go_of_test_database(connection: Any, **_: Any) -> None:
    """Close what we keep open when Django is about to create, copy or drop a test database.

    PostgreSQL refuses all three while somebody is connected.  Django has no signal for it, but it is the
    only time it connects without a database.
    """
    if connection.alias != NO_DB_ALIAS:
        return
    close_pools()
    # Looked up, not imported: a process that never drove a run has no slot, and no LangGraph.
    if slots := sys.modules.get("celegraph.tasks.slot"):
        slots.close_current()
