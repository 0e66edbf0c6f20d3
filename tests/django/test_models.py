"""The ledger through Django's ORM: everything can be read, nothing can be written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.django.support import Project
from tests.support.databases import fresh_database

READ = {
    "run": ["refund", "waiting", {"order": "A-1", "cents": 5}, True],
    "asked": ["waiting", "refund", {"order": "A-1", "cents": 5}, "open"],
    "events": ["admitted", "leased"],
    "effects": 0,
    "by filter": 1,
}


@pytest.fixture
def ledger_apart(project: Project) -> Iterator[Project]:
    """The ledger in "other", the second of Django's databases; the application's rows in the first."""
    with fresh_database(project.database_url) as other:
        apart = project.with_env(PROJECT_OTHER_URL=other).having(CELERY_CELEGRAPH={"database": "other"})
        apart.manage("migrate", "--verbosity", "0")
        apart.manage("migrate", "--verbosity", "0", "--database", "other")
        yield apart


def test_runs_and_what_belongs_to_them_are_read_with_the_orm(migrated: Project) -> None:
    assert migrated.scene("model_scenes.reads") == {**READ, "database": "default", "schema": "celegraph"}


@pytest.mark.parametrize("where", ["settings", "environment"])
def test_the_models_follow_the_schema_of_the_configuration(project: Project, where: str) -> None:
    named = project.having(CELERY_CELEGRAPH={"schema": "durable"} if where == "settings" else {})
    if where == "environment":
        named = named.with_env(CELEGRAPH_SCHEMA="durable")
    named.manage("migrate", "--verbosity", "0")

    assert named.scene("model_scenes.reads") == {**READ, "database": "default", "schema": "durable"}
    assert "No changes detected" in named.manage("makemigrations", "--check", "celegraph")


def test_with_several_databases_models_and_runs_are_in_the_named_one(ledger_apart: Project) -> None:
    facts = ledger_apart.scene("model_scenes.reads")

    assert facts == {**READ, "database": "other", "schema": "celegraph"}


def test_a_block_on_the_ledgers_own_database_is_joined_and_one_on_the_other_is_not(
    ledger_apart: Project,
) -> None:
    assert ledger_apart.scene("scenes.joins_only", "other") == {"other": False, "default": True}


def test_every_way_of_djangos_to_write_is_refused_and_names_the_function(migrated: Project) -> None:
    said = migrated.scene("model_scenes.writes")

    assert set(said) == {
        *("save", "delete", "create", "get_or_create", "update_or_create", "bulk_create", "bulk_update"),
        *("update", "filtered delete", "save_base", "related", "related update"),
        *("approval", "effect", "event"),
    }
    assert "written" not in said.values()
    assert "cancel_run()" in said["save"]
    assert "decide()" in said["approval"]
    assert "resolve_effect()" in said["effect"]


def test_the_named_database_must_be_one_of_djangos(project: Project) -> None:
    said = project.having(CELERY_CELEGRAPH={"database": "runs"}).manage("check", code=1)

    assert "celegraph.E004" in said
    assert "'runs'; DATABASES has default" in said


def test_a_rule_that_cannot_be_imported_is_reported(project: Project) -> None:
    said = project.having(CELERY_CELEGRAPH={"may": "shop.rules.may"}).manage("check", code=1)

    assert "celegraph.E005" in said
