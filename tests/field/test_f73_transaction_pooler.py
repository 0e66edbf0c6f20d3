"""F73: a PgBouncer that hands out another backend per transaction is refused, one per session works.

Seen elsewhere: the lock taken on one backend and the unlock sent to another; an orphan that blocks
every new process, or a lock that excludes nobody.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

import celegraph
from celegraph.agent.migrate import migrate
from celegraph.cli import main
from celegraph.errors import PoolerRefused
from celegraph.ledger.migrate import migrations
from tests.support.app import make_app
from tests.support.pgbouncer import pgbouncer
from tests.support.scene import Scene

REMEDY = "Point celegraph's 'database_url' at PostgreSQL itself, or at a pooler in session mode"


@pytest.fixture
def transaction_url(database_url: str) -> Iterator[str]:
    """The test's database through a pooler in transaction mode."""
    with pgbouncer(database_url, "transaction") as url:
        yield url


@pytest.fixture
def session_url(database_url: str) -> Iterator[str]:
    """The test's database through a pooler in session mode."""
    with pgbouncer(database_url, "session") as url:
        yield url


def advisory_locks(database_url: str) -> int:
    """Session locks that somebody holds in this database."""
    with psycopg.connect(database_url) as conn:
        row = conn.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_start_run_refuses_and_writes_nothing(
    database_url: str, transaction_url: str, broker_url: str
) -> None:
    app = make_app(broker_url, settings={"database_url": transaction_url})
    app.set_current()

    with pytest.raises(PoolerRefused, match=REMEDY):
        celegraph.start_run.delay("retried", {"cents": 1}, run_id="run-1")

    with psycopg.connect(database_url) as conn:
        assert conn.execute("SELECT count(*) FROM celegraph.runs").fetchone() == (0,)
    assert advisory_locks(database_url) == 0


def test_a_worker_does_not_start(
    database_url: str, transaction_url: str, broker_url: str, tmp_path: Path
) -> None:
    with Scene(database_url, broker_url, tmp_path) as scene:
        worker = scene.worker("refused", start=False, env=scene.env(database_url=transaction_url))
        worker.launch()

        assert worker.wait() == 1

        assert REMEDY in worker.log
        assert not worker.is_ready()


def test_doctor_says_so(transaction_url: str) -> None:
    result = CliRunner().invoke(main, ["doctor", "--json", "--database-url", transaction_url])

    assert result.exit_code == 1
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["pooler"]["state"] == "error"
    assert REMEDY in checks["pooler"]["says"]


def test_migrate_refuses_and_leaves_no_lock_behind(empty_database_url: str) -> None:
    with (
        pgbouncer(empty_database_url, "transaction") as url,
        pytest.raises(PoolerRefused, match=REMEDY),
    ):
        migrate(url)

    assert advisory_locks(empty_database_url) == 0


def test_session_mode_carries_a_whole_run(
    database_url: str, session_url: str, broker_url: str, tmp_path: Path
) -> None:
    with Scene(session_url, broker_url, tmp_path) as scene:
        scene.worker("pooled", concurrency=1, beat=True)
        run_id = scene.begin("approved")

        approval = scene.question(run_id)
        celegraph.decide(approval.approval_id, "approve", by="ana")
        scene.await_status(run_id, "finished")

        assert [effect.status for effect in scene.effects(run_id)] == ["sent"]
        doctor = CliRunner().invoke(main, ["doctor", "--json", "--database-url", session_url])
        checks = {check["name"]: check["state"] for check in json.loads(doctor.stdout)["checks"]}
        assert checks["pooler"] == "ok"


def test_migrate_works_through_session_mode(empty_database_url: str) -> None:
    with pgbouncer(empty_database_url, "session") as url:
        assert migrate(url).applied == [migration.version for migration in migrations()]
        assert migrate(url).applied == []
