"""The URL connects as the parameters would."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from psycopg.conninfo import conninfo_to_dict

from celegraph.ledger.url import database_url

TCP = {"host": "db.example", "port": "5433", "user": "shop", "password": "secret", "dbname": "shop"}


@pytest.mark.parametrize(
    "params",
    [
        TCP,
        TCP | {"user": "a:b@c/d", "password": "p%w +?&#[=", "dbname": "n/a?m e"},
        TCP | {"host": "::1"},
        TCP | {"host": "a,b", "port": "5432,5433"},
        TCP | {"sslmode": "verify-full", "sslrootcert": "/etc/ssl/a b+c.pem"},
        TCP | {"options": "-c role=the\\ owner -c statement_timeout=5"},
        {"dbname": "shop"},
        {"dbname": "shop", "host": "/var/run/postgresql", "user": "shop", "password": "x"},
        {"dbname": "shop", "host": "/run/pg", "port": "5433"},
        {"dbname": "shop", "port": "5433", "user": "shop"},
        {"dbname": "shop", "password": "without a user"},
        {"service": "shop", "passfile": ".pgpass"},
    ],
)
def test_libpq_reads_the_url_as_it_would_the_parameters(params: dict[str, str]) -> None:
    assert conninfo_to_dict(database_url(params)) == params


def test_what_is_only_the_drivers_is_left_out() -> None:
    more = {"prepare_threshold": 5, "cursor_factory": object, "context": None, "connect_timeout": 3}

    assert conninfo_to_dict(database_url(TCP | more)) == TCP | {"connect_timeout": "3"}


def test_the_usual_url_looks_usual() -> None:
    parts = urlsplit(database_url(TCP))

    assert (parts.hostname, parts.port, parts.username, parts.password, parts.path) == (
        "db.example", 5433, "shop", "secret", "/shop",
    )  # fmt: skip
