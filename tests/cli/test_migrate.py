"""celegraph migrate, as deploys run it: all at once, and again."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg

from celegraph.ledger.migrate import latest_version, migrations
from tests.cli.conftest import CommandLine
from tests.support.process import ROOT


def test_eight_at_once_on_an_empty_database_all_succeed(empty_database_url: str) -> None:
    environment = os.environ | {"CELEGRAPH_DATABASE_URL": empty_database_url}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "celegraph", "migrate"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(8)
    ]

    said = [process.communicate(timeout=100)[0] for process in processes]

    assert [process.returncode for process in processes] == [0] * 8, said
    assert sum("(applied " in text for text in said) == 1
    assert sum("(nothing to do)" in text for text in said) == 7
    with psycopg.connect(empty_database_url) as conn:
        rows = conn.execute("SELECT version FROM celegraph.migrations ORDER BY version").fetchall()
    assert rows == [(migration.version,) for migration in migrations()]


def test_another_schema_is_made_beside_the_first(cli: CommandLine) -> None:
    assert cli.json("migrate", "--schema", "second")["applied"] == [m.version for m in migrations()]

    assert cli.json("migrate", "--schema", "second") == {
        "schema": "second",
        "version": latest_version(),
        "applied": [],
    }
    assert cli.json("runs", "--schema", "second") == []


def test_an_impossible_schema_name_is_refused(cli: CommandLine) -> None:
    result = cli("migrate", "--schema", "My Schema")

    assert result.exit_code == 1
    assert "option 'schema'" in result.stderr
