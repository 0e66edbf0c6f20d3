"""`celegraph migrate`: LangGraph's tables and ours, in one command under one lock."""

from __future__ import annotations

from typing import Any, cast

from celegraph.ledger.migrate import MigrationReport, apply


def migrate(database_url: str, schema: str = "celegraph") -> MigrationReport:
    """Bring the schema up to date.  Safe from many processes at once, and when nothing is to do."""

    def checkpoint_tables(conn: Any) -> None:
        # Here, not above: a web process that only imports this module stays without LangGraph.
        from langgraph.checkpoint.postgres import PostgresSaver

        PostgresSaver(conn).setup()

    return apply(database_url, schema, cast("Any", checkpoint_tables))
