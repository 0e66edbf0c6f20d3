"""A fresh database for each test, copied from one that was migrated once."""

from __future__ import annotations

import importlib
import importlib.util
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from tests.support.waiting import eventually


@contextmanager
def fresh_database(server_url: str, template: str = "template0") -> Iterator[str]:
    """The URL of a new database; it is dropped afterwards, whoever is still connected."""
    name = f"celegraph_{uuid.uuid4().hex}"
    _create(server_url, name, template)
    try:
        yield database_url(server_url, name)
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )


def migrated_template(server_url: str) -> str:
    """The name of a new database that holds the tables of this code and nothing else."""
    name = f"celegraph_template_{uuid.uuid4().hex}"
    _create(server_url, name, "template0")
    if importlib.util.find_spec("celegraph.agent.migrate"):
        importlib.import_module("celegraph.agent.migrate").migrate(database_url(server_url, name))
    return name


def database_url(server_url: str, name: str) -> str:
    """The same server and user, another database."""
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))


def _create(server_url: str, name: str, template: str) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        )


def waiting_for(holder: psycopg.Connection[Any], conn: psycopg.Connection[Any]) -> list[tuple[int, str]]:
    """The pens that wait for what `holder` has locked: their backends, and what they say."""
    query = (
        "SELECT pid, query FROM pg_stat_activity"
        " WHERE %s = ANY(pg_blocking_pids(pid)) AND application_name LIKE 'celegraph pen%%'"
    )
    return conn.cursor(row_factory=tuple_row).execute(query, (holder.info.backend_pid,)).fetchall()


def cut_what_waits_for(holder: psycopg.Connection[Any], conn: psycopg.Connection[Any]) -> str:
    """Cancel the statement of the first pen that waits for `holder`, and see it gone; its text."""
    pid, said = eventually(lambda: waiting_for(holder, conn))[0]
    conn.execute("SELECT pg_cancel_backend(%s)", (pid,))
    eventually(lambda: (pid, said) not in waiting_for(holder, conn))
    return said


def end_our_backends(conn: psycopg.Connection[Any]) -> int:
    """Terminate every connection of celegraph to this database; how many there were."""
    return conn.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name LIKE 'celegraph%'"
    ).rowcount
