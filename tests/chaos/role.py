"""A database and a role of the product's own: an ordinary one, whose connections can be counted."""

from __future__ import annotations

import secrets
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from celegraph.agent.migrate import migrate
from celegraph.config import load_config
from celegraph.ledger.connect import Conn, connect

ROLE = "host"
_WITNESS = Path(__file__).with_name("witness.sql").read_text("utf-8").encode()


def prepare(admin_url: str) -> tuple[str, str]:
    """Make both, migrated and watched by the witness; returns the URLs of the role and of the superuser."""
    password = secrets.token_urlsafe(12)
    with psycopg.connect(admin_url, autocommit=True) as admin:
        role, secret = sql.Identifier(ROLE), sql.Literal(password)
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, secret))
        admin.execute(sql.SQL("CREATE DATABASE chaos OWNER {}").format(role))
    url = _with(admin_url, user=ROLE, password=password)
    migrate(url)
    with connect(load_config({"database_url": url}), application="chaos") as conn:
        watch(conn)
    return url, _with(admin_url)


def watch(conn: Conn) -> None:
    """Install the witness in a migrated database."""
    # Several statements at once go only by the simple protocol.
    conn.execute(_WITNESS, prepare=False)


def _with(url: str, *, user: str | None = None, password: str | None = None) -> str:
    parts = urlsplit(url)
    credentials, _, place = parts.netloc.rpartition("@")
    if user is not None:
        credentials = f"{user}:{password}"
    return urlunsplit(parts._replace(netloc=f"{credentials}@{place}", path="/chaos"))
