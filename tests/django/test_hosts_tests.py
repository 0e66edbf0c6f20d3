"""A host's `manage.py test` works with runs in it, from making the test database to dropping it."""

from __future__ import annotations

import psycopg
import pytest

from tests.django.support import Project


def _databases(project: Project) -> set[str]:
    with psycopg.connect(project.database_url) as conn:
        name = project.database_url.rpartition("/")[2]
        return {n for (n,) in conn.execute("SELECT datname FROM pg_database") if n.startswith(f"test_{name}")}


@pytest.mark.parametrize("migrations", ["with", "without"])
def test_runs_of_a_hosts_tests_use_the_test_database_and_let_go_of_it(
    project: Project, migrations: str
) -> None:
    if migrations == "without":
        project = project.having(MIGRATION_MODULES={"celegraph": None, "shop": None})

    said = project.manage("test", "tests.django.project.shop", "--noinput")

    assert "Ran 4 tests" in said
    assert "OK" in said
    assert _databases(project) == set()


def test_parallel_test_processes_have_ledgers_of_their_own(project: Project) -> None:
    said = project.manage("test", "tests.django.project.shop", "--noinput", "--parallel", "2")

    assert "Ran 4 tests" in said
    assert _databases(project) == set()
