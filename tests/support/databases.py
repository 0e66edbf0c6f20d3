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


def end_our_backends(conn: psycopg.Connection[Any]) -> int:
    """Terminate every connection of celegraph to this database; how many there were."""
    return conn.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name LIKE 'celegraph%'"
    ).rowcount
