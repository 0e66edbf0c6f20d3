"""What goes wrong is one clear line and exit status 1; with --json it is {"error": ...}."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from celegraph.cli import main
from tests.cli.conftest import CommandLine
from tests.support.process import ROOT

EVERY = (
    ["runs"],
    ["trace", "run-1"],
    ["explain", "run-1"],
    ["approvals"],
    ["decide", "ap-1", "approve", "--by", "ana"],
    ["effects", "run-1"],
    ["resolve", "cg-1", "skip", "--by", "ana"],
    ["cancel", "run-1"],
    ["retry", "run-1"],
    ["release", "run-1"],
)


@pytest.mark.parametrize("words", EVERY, ids=lambda words: words[0])
def test_a_missing_schema_is_one_line_with_the_remedy(
    empty_database_url: str, words: list[str], cli: CommandLine
) -> None:
    result = CommandLine(empty_database_url)(*words)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: the ledger's tables are not there; run `celegraph migrate`\n"


@pytest.mark.parametrize("words", EVERY, ids=lambda words: words[0])
def test_with_json_the_error_is_json(cli: CommandLine, words: list[str]) -> None:
    result = cli(*words, "--json", "--schema", "other")

    assert (result.exit_code, result.stderr) == (1, "")
    assert json.loads(result.stdout) == {
        "error": "the ledger's tables are not there; run `celegraph migrate`"
    }


def test_a_newer_schema_asks_for_an_upgrade_here(cli: CommandLine, database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute("INSERT INTO celegraph.migrations (version, name) VALUES (9999, 'future')")

    for words in (["runs"], ["migrate"]):
        result = cli(*words)
        assert result.exit_code == 1
        assert "tables are at version 9999" in result.stderr
        assert "upgrade celegraph here" in result.stderr


def test_an_older_schema_asks_for_a_migration(cli: CommandLine, database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute("DELETE FROM celegraph.migrations")

    result = cli("runs")

    assert result.exit_code == 1
    assert "tables are at version 0" in result.stderr
    assert "run `celegraph migrate`" in result.stderr


@pytest.mark.parametrize("words", [["trace", "x"], ["explain", "x"], ["effects", "x"], ["cancel", "x"]])
def test_an_unknown_run_is_said_to_be_unknown(cli: CommandLine, words: list[str]) -> None:
    result = cli(*words)

    assert (result.exit_code, result.stderr) == (1, "error: no run 'x'; `celegraph runs` lists them\n")


def test_a_database_that_is_down_is_one_line_without_the_password() -> None:
    result = CliRunner().invoke(main, ["runs", "--database-url", "postgresql://u:secret@127.0.0.1:1/x"])

    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: the database cannot be used: connection failed")
    assert "secret" not in result.output


@pytest.mark.parametrize(
    ("url", "said"),
    [("sqlite:///x", "SQLite cannot hold runs"), ("mysql://x", "must start with postgresql://")],
)
def test_a_url_of_something_else_is_refused(url: str, said: str) -> None:
    result = CliRunner().invoke(main, ["runs", "--database-url", url])

    assert result.exit_code == 1
    assert said in result.stderr


def test_without_any_database_the_ways_to_name_one_are_told(cli: CommandLine) -> None:
    result = CliRunner().invoke(main, ["runs"])

    assert result.exit_code == 1
    assert "CELEGRAPH_DATABASE_URL" in result.stderr


@pytest.mark.parametrize(
    ("app", "said"),
    [
        ("no_such_module", "--app 'no_such_module' cannot be loaded: ModuleNotFoundError"),
        ("tests.cli.refund:asking", "cannot be loaded: AttributeError"),
        ("tests.cli.bare_app", "the Celery app 'tests.cli.bare_app' has no celegraph"),
    ],
)
def test_an_app_that_is_none_is_told_from_one_without_celegraph(
    cli: CommandLine, app: str, said: str
) -> None:
    result = cli("runs", "--app", app)

    assert result.exit_code == 1
    assert said in result.stderr


def test_an_unknown_command_is_told(cli: CommandLine) -> None:
    assert "No such command 'rusn'" in cli("rusn").stderr


def celegraph(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)


def test_looking_and_answering_import_no_langgraph() -> None:
    told = celegraph(
        "-c",
        "import sys\n"
        "from celegraph.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "main(['runs', '--database-url', 'postgresql://u@127.0.0.1:1/x'], standalone_mode=False)\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'langgraph', 'langchain_core'}))\n",
    )

    assert told.stdout.endswith("[]\n"), told.stderr


def test_a_reader_that_leaves_is_no_error(database_url: str, tmp_path: Path) -> None:
    words = f"{sys.executable} -m celegraph runs --json --database-url {database_url} | true"

    told = subprocess.run(["bash", "-c", words], cwd=ROOT, capture_output=True, text=True, check=False)

    assert told.stderr == ""
