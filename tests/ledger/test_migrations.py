"""Migrations: eight at once, twice, and schemas of other releases."""

from __future__ import annotations

import multiprocessing

import langgraph.checkpoint.postgres  # noqa: F401 - before the fork, so that the eight lose no time
import psycopg
import pytest

from celegraph.agent.migrate import migrate
from celegraph.config import load_config
from celegraph.errors import SchemaMissing, SchemaOutOfDate, SchemaTooNew
from celegraph.ledger.migrate import latest_version, migrations
from celegraph.ledger.pool import ledger


def test_f120_all_workers_run_set_up_at_once(empty_database_url: str) -> None:
    """F120: migrate from eight processes at once; every one succeeds, one applies."""
    # Forked, so that all eight begin in the same moment; importing LangGraph would spread them out.
    context = multiprocessing.get_context("fork")
    barrier, applied = context.Barrier(8), context.Queue()

    def migrate_with_the_others() -> None:
        barrier.wait()
        applied.put(migrate(empty_database_url).applied)

    processes = [context.Process(target=migrate_with_the_others) for _ in range(8)]
    for process in processes:
        process.start()
    reports = [applied.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(30)

    assert [process.exitcode for process in processes] == [0] * 8
    assert sorted(reports) == [[]] * 7 + [[migration.version for migration in migrations()]]


def test_migrating_again_changes_nothing(database_url: str) -> None:
    report = migrate(database_url)

    assert (report.applied, report.version) == ([], latest_version())


def test_a_schema_without_tables_says_what_to_do(empty_database_url: str) -> None:
    config = load_config({"database_url": empty_database_url})

    with pytest.raises(SchemaMissing, match="celegraph migrate"), ledger(config):
        pass


@pytest.mark.parametrize(
    ("change", "error", "remedy"),
    [
        ("INSERT INTO celegraph.migrations VALUES (9999, 'future')", SchemaTooNew, "upgrade celegraph"),
        ("DELETE FROM celegraph.migrations", SchemaOutOfDate, "celegraph migrate"),
    ],
)
def test_a_schema_of_another_release_is_refused_with_the_remedy(
    database_url: str, change: str, error: type[Exception], remedy: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(change.encode())
    config = load_config({"database_url": database_url})

    with pytest.raises(error, match=remedy), ledger(config):
        pass
    if error is SchemaTooNew:
        with pytest.raises(error, match=remedy):
            migrate(database_url)


def test_code_works_on_beside_a_newer_release_whose_migrations_are_made_for_it(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("INSERT INTO celegraph.migrations VALUES (9999, 'future', DEFAULT, 'pre')")
        conn.execute("ALTER TABLE celegraph.runs ADD COLUMN future text NOT NULL DEFAULT 'x'")
    config = load_config({"database_url": database_url})

    with ledger(config) as ours:
        assert ours.execute("SELECT 1 AS one").fetchone() == {"one": 1}

    # A deploy that was rolled back migrates again, too.
    assert migrate(database_url).applied == []
    assert migrate(database_url).version == 9999
