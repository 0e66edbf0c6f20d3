"""From Django's settings to the ledger's configuration."""

from __future__ import annotations

import sys

import psycopg
import pytest

from tests.django.support import Project


def test_nothing_but_the_app_and_install_is_needed(migrated: Project) -> None:
    facts = migrated.scene("scenes.configuration")

    assert facts["arrived"] == {"sweep_every": "500ms"}
    assert facts["sweep_every"] == 0.5
    assert facts["database"] == migrated.database_url.rpartition("/")[2]


def test_settings_are_found_without_celerys_namespace(migrated: Project) -> None:
    facts = migrated.with_env(PROJECT_NO_NAMESPACE="1").scene("scenes.configuration")

    assert facts["arrived"] is None
    assert facts["sweep_every"] == 0.5


def test_an_own_database_url_wins_over_djangos(migrated: Project) -> None:
    other = migrated.database_url.replace("127.0.0.1", "localhost")
    settings = migrated.having(CELERY_CELEGRAPH={"database_url": other})
    environment = migrated.with_env(CELEGRAPH_DATABASE_URL=other)

    assert settings.scene("scenes.configuration")["database_url"] == other
    assert environment.scene("scenes.configuration")["database_url"] == other


def test_the_database_is_read_late_because_test_runners_change_it(migrated: Project) -> None:
    assert migrated.scene("scenes.moved_database") == ["first", "second"]


def test_django_and_the_ledger_connect_alike(migrated: Project) -> None:
    """Odd characters in a password, a role to assume, options of the driver and of libpq."""
    name = migrated.database_url.rpartition("/")[2]
    with psycopg.connect(migrated.database_url, autocommit=True) as conn:
        conn.execute(f"CREATE ROLE \"o:d@d/ {name}\" LOGIN PASSWORD 'p%w +?&#['")
        conn.execute(f'CREATE ROLE "the owner {name}"')
        conn.execute(f'GRANT "the owner {name}" TO "o:d@d/ {name}"')
    odd = migrated.having(
        database={
            "USER": f"o:d@d/ {name}",
            "PASSWORD": "p%w +?&#[",
            "OPTIONS": {
                "assume_role": f"the owner {name}",
                "server_side_binding": True,
                "isolation_level": 2,
                "prepare_threshold": 5,
                "sslmode": "prefer",
            },
        }
    )
    try:
        facts = odd.scene("scenes.connects_alike")
    finally:
        with psycopg.connect(migrated.database_url, autocommit=True) as conn:
            conn.execute(f'DROP ROLE "o:d@d/ {name}", "the owner {name}"')

    assert facts["ledger"] == facts["django"] == [f"o:d@d/ {name}", f"the owner {name}", name]


def test_a_web_process_never_imports_langgraph(migrated: Project) -> None:
    facts = migrated.scene("scenes.web_process")

    assert facts == {"status": "ready", "langgraph": False, "langchain": False}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="as on the newest Django")
def test_tests_run_on_the_newest_django_where_python_allows() -> None:
    import django

    assert django.VERSION >= (6, 0)
