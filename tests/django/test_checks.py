"""`manage.py check` says what cannot work before anything runs."""

from __future__ import annotations

from tests.django.support import Project

SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:", "OPTIONS": {}}


def test_a_right_project_has_nothing_to_say(project: Project) -> None:
    assert "no issues" in project.manage("check")


def test_sqlite_is_refused_with_the_remedy(project: Project) -> None:
    said = project.having(database=SQLITE).manage("check", code=1)

    assert "celegraph.E001" in said
    assert "SQLite has no session locks" in said
    assert "django.db.backends.postgresql" in said
    assert "E003" not in said


def test_runs_in_an_own_postgresql_beside_sqlite_are_allowed_and_warned_about(project: Project) -> None:
    own = {"database_url": project.database_url}

    said = project.having(database=SQLITE, CELERY_CELEGRAPH=own).manage("check")

    assert "celegraph.W001" in said
    assert "cannot join a transaction" in said


def test_no_database_at_all_is_refused(project: Project) -> None:
    said = project.having(DATABASES={}).manage("check", code=1)

    assert "celegraph.E001" in said


def test_psycopg2_is_refused_with_the_remedy(project: Project) -> None:
    said = project.scene("check_scenes.with_psycopg2")

    assert said == ["celegraph.E002", "pip install 'psycopg[binary]>=3.3'"]


def test_an_unknown_option_is_reported_with_a_likely_one(project: Project) -> None:
    said = project.having(CELERY_CELEGRAPH={"leese": "60s"}).manage("check", code=1)

    assert "celegraph.E003" in said
    assert "unknown option 'leese', did you mean 'lease'?" in said


def test_a_bad_value_is_reported_also_before_install(project: Project) -> None:
    bare = project.with_env(PROJECT_WITHOUT_INSTALL="1")

    said = bare.having(CELERY_CELEGRAPH={"lease": "soon"}).manage("check", code=1)

    assert "celegraph.E003" in said
    assert "'lease'" in said


def test_a_web_process_without_the_celery_app_is_warned(project: Project) -> None:
    said = project.with_env(PROJECT_WITHOUT_INSTALL="1").manage("check")

    assert "celegraph.W002" in said
    assert "from .celery import app" in said
