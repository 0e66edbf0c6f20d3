"""The command line in the test's process, knowing nothing but the database; and runs to look at."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner, Result

from celegraph.cli import main
from celegraph.testing.database import Ledger
from celegraph.testing.driver import Driven, Driver
from tests.cli.refund import INPUT, asking, failing


@dataclass(frozen=True)
class CommandLine:
    """`celegraph` with --database-url, as typed by a person or by a program."""

    database_url: str

    def __call__(self, *words: str) -> Result:
        """Run a command; an exception that is not ours to word is the test's failure."""
        result = CliRunner().invoke(main, [*words, "--database-url", self.database_url])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def json(self, *words: str) -> Any:
        """What a successful command prints with --json."""
        result = self(*words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def cli(database_url: str, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line on the test's own database."""
    for name in ("CELEGRAPH_APP", "CELEGRAPH_DATABASE_URL", "CELEGRAPH_SCHEMA"):
        monkeypatch.delenv(name, raising=False)
    return CommandLine(database_url)


@pytest.fixture
def drive(database_url: str) -> Driver:
    """Drives runs in the database that `cli` looks at."""
    return Driver(Ledger(database_url, "celegraph"))


@pytest.fixture
def waiting(drive: Driver) -> Driven:
    """A run that asks whether to refund."""
    return drive(asking, INPUT, run_id="run-1")


@pytest.fixture
def failed(drive: Driver) -> Driven:
    """A run that failed."""
    return drive(failing, INPUT, run_id="run-2")
