"""A log as the tests' oracle, and `drive` on a database of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from celegraph.testing.database import Ledger
from celegraph.testing.driver import Driver
from tests.support.log import Log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """What nodes and providers really did."""
    return Log(tmp_path / "log")


@pytest.fixture
def lonely_drive(database_url: str) -> Driver:
    """For tests that sweep: nobody else's runs are in this database."""
    return Driver(Ledger(database_url, "celegraph"))
