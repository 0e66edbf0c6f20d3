"""The ledger's tables by way of `manage.py migrate`."""

from __future__ import annotations

import psycopg
import pytest

from tests.django.support import Project
from tests.support.process import ROOT


def _tables(url: str) -> set[str]:
    with psycopg.connect(url) as conn:
        rows = conn.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'celegraph'"
        )
        return {name for (name,) in rows}


def test_migrate_makes_the_ledger_and_twice_is_harmless(project: Project) -> None:
    project.manage("migrate", "--verbosity", "0")
    project.manage("migrate", "celegraph", "zero", "--fake")
    project.manage("migrate", "celegraph")

    assert {"runs", "effects", "approvals", "checkpoints"} <= _tables(project.database_url)


def test_parallel_deploys_all_succeed(project: Project) -> None:
    # Django itself cannot make its own table twice at once.
    project.manage("migrate", "shop")

    racers = [project.start("tests.django.project.manage", "migrate", "celegraph") for _ in range(3)]
    said = [racer.communicate(timeout=90) for racer in racers]

    assert [racer.returncode for racer in racers] == [0, 0, 0], said


def test_going_back_keeps_the_ledger_and_says_why(migrated: Project) -> None:
    said = migrated.manage("migrate", "celegraph", "zero")

    assert "the ledger's tables are kept" in said
    assert "runs" in _tables(migrated.database_url)
    assert "No changes detected" in migrated.manage("makemigrations", "--check", "celegraph")
    migrated.manage("migrate", "celegraph")


def test_the_ledger_is_made_without_migrations_too(project: Project) -> None:
    """`pytest --no-migrations` sets this for every app."""
    without = project.having(MIGRATION_MODULES={"celegraph": None, "shop": None})

    without.manage("migrate", "--run-syncdb", "--verbosity", "0")

    assert "runs" in _tables(project.database_url)


def test_other_databases_get_no_ledger(project: Project, database_url: str) -> None:
    both = project.with_env(PROJECT_OTHER_URL=database_url)
    with psycopg.connect(database_url) as conn:
        conn.execute("DROP SCHEMA celegraph CASCADE")

    both.manage("migrate", "--database", "other", "--verbosity", "0")

    assert _tables(database_url) == set()


def test_the_schema_of_the_configuration_is_used(project: Project) -> None:
    named = project.having(CELERY_CELEGRAPH={"schema": "durable"})

    named.manage("migrate", "--verbosity", "0")

    with psycopg.connect(project.database_url) as conn:
        assert conn.execute("SELECT to_regclass('durable.runs') IS NOT NULL").fetchone() == (True,)


def test_django_has_a_migration_for_each_of_the_ledgers() -> None:
    """Else a project that is migrated already would not hear of the new tables."""
    files = (ROOT / "celegraph/contrib/django/migrations").glob("0*.py")
    ledgers = (ROOT / "celegraph/ledger/sql/migrations").glob("0*.sql")

    assert {file.stem for file in files} == {file.name.partition(".")[0] for file in ledgers}


@pytest.mark.parametrize("missing", ["CELEGRAPH", "install"])
def test_migrate_needs_neither_settings_nor_install(project: Project, missing: str) -> None:
    bare = project.with_env(PROJECT_WITHOUT_INSTALL="1") if missing == "install" else project

    bare.having(**({"CELERY_CELEGRAPH": {}} if missing == "CELEGRAPH" else {})).manage("migrate", "celegraph")

    assert "runs" in _tables(project.database_url)
