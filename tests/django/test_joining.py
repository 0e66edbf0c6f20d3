"""Runs and decisions belong to the transaction they are made in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.django.support import Project
from tests.support.databases import fresh_database

NOTHING = {"exists": False, "rung": False}
STARTED = {"exists": True, "rung": True}


@pytest.fixture
def two_databases(project: Project) -> Iterator[Project]:
    """ "other" is a second database on the same server."""
    with fresh_database(project.database_url) as other:
        both = project.with_env(PROJECT_OTHER_URL=other)
        both.manage("migrate", "--verbosity", "0")
        both.manage("migrate", "--verbosity", "0", "--database", "other")
        yield both


@pytest.fixture(params=["client side", "server side"])
def binding(request: pytest.FixtureRequest, migrated: Project) -> Project:
    """Both ways in which Django sends parameters."""
    options = {"application_name": "project", "server_side_binding": request.param == "server side"}
    return migrated.having(database={"OPTIONS": options})


def test_a_run_is_seen_and_rung_only_after_the_commit(binding: Project) -> None:
    facts = binding.scene("scenes.joins", "commit")

    assert facts["inside"] == {**NOTHING, "own": 1, "search_path": '"$user", public'}
    assert facts["after"] == STARTED


@pytest.mark.parametrize("end", ["rollback", "savepoint"])
def test_a_run_falls_with_its_block_and_is_never_rung(migrated: Project, end: str) -> None:
    facts = migrated.scene("scenes.joins", end)

    assert facts["inside"]["own"] == 1
    assert facts["after"] == NOTHING


def test_a_run_joins_through_another_address_of_the_same_database(migrated: Project) -> None:
    """As when Django goes through a pooler and the ledger past it."""
    around = migrated.database_url.replace("127.0.0.1", "localhost")
    roundabout = migrated.having(CELERY_CELEGRAPH={"database_url": around})

    assert roundabout.scene("scenes.joins", "rollback")["after"] == NOTHING
    assert roundabout.scene("scenes.joins", "commit")["after"] == STARTED


def test_a_block_on_another_database_is_not_joined(two_databases: Project) -> None:
    assert two_databases.scene("scenes.not_on_another_database") == STARTED


def test_a_transaction_managed_by_hand_is_joined_and_the_sweep_rings(migrated: Project) -> None:
    facts = migrated.scene("scenes.joins_by_hand")

    assert facts == {"rolled_back": NOTHING, "committed": {"exists": True, "rung": False}}


def test_a_taken_run_id_is_refused_and_the_block_goes_on(migrated: Project) -> None:
    assert migrated.scene("scenes.conflict") == {"what": "input", "orders": 1}


def test_nothing_is_started_in_a_block_that_must_be_rolled_back(migrated: Project) -> None:
    assert "until the end of the 'atomic' block" in migrated.scene("scenes.broken_block")


def test_async_views_start_runs_directly_and_in_a_block(migrated: Project) -> None:
    assert migrated.scene("scenes.from_async_code") == {"direct": STARTED, "joined": STARTED}


def test_a_decision_falls_and_holds_with_its_block(binding: Project) -> None:
    facts = binding.scene("scenes.decides")

    assert (facts["undone"], facts["still"]) == ("rejected", "open")
    assert facts["decision"] == {"verb": "edit"}
    assert facts["args"] == {"order": "A-1", "cents": 500}
    assert facts["utc"] == "UTC"
    assert facts["before_commit"] == "waiting"
    assert facts["after"] == ["finished", {"order": "A-1", "cents": 1999, "receipt": "A-1: 500"}]


def test_f122_enqueue_inside_a_transaction_a_worker_never_looks_before_the_commit_or_after_a_rollback(
    migrated: Project, tmp_path: Path
) -> None:
    with migrated.worker(tmp_path):
        facts = migrated.scene("scenes.with_worker")

    assert facts == {"open": False, "packed": 1, "leased": 1, "undone": NOTHING}
