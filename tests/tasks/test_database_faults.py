"""The database fails in the ways databases fail; every run ends, and every effect happens once."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from celegraph import start_run
from celegraph.dev.postgres import Postgres
from tests.support.databases import cut_what_waits_for, end_our_backends
from tests.support.pgbouncer import pgbouncer
from tests.support.process import kill_and_await
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.wire import Side, Wire


def nth(number: int) -> Callable[[str], bool]:
    """Recognises the `number`-th statement that passes, whatever it is."""
    seen = iter(range(number))
    return lambda sql: next(seen, None) is None


@pytest.mark.parametrize("seed", [1, 2])
def test_a_backend_may_end_at_any_statement(
    database_url: str, broker_url: str, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    with Wire(database_url) as wire, Scene(database_url, broker_url, tmp_path) as scene:
        scene.control()
        worker = scene.worker("w", queues=["celegraph"], concurrency=1, env=scene.env(database_url=wire.url))
        scene.await_status(scene.begin("steps"), "finished")
        children = worker.children()
        for _ in range(6):
            side: Side = chance.choice(("before", "after"))
            with wire.hold(nth(chance.randrange(1, 22)), side) as hold:
                run_id = scene.begin("retried")
                eventually(lambda: hold.port or scene.run(run_id).status == "finished")  # noqa: B023
                end_our_backends(scene.conn)
                hold.release()
                scene.await_status(run_id, "finished")
            assert len(scene.provider.acts_of(run_id)) == 1
        assert worker.children() == children


def test_a_restart_of_the_database_during_runs_costs_no_run_and_no_worker(
    own_postgres: Postgres, broker_url: str, tmp_path: Path
) -> None:
    with Scene(own_postgres.url, broker_url, tmp_path) as scene:
        worker = scene.worker("w", concurrency=2, beat=True)
        scene.gates.close("pay:call")
        run_ids = [scene.begin("retried") for _ in range(2)]
        for run_id in run_ids:
            scene.gates.await_arrival("pay:call", run_id)
        children = worker.children()

        own_postgres.restart()
        scene.gates.open("pay:call")

        with Scene(own_postgres.url, broker_url, tmp_path) as after:
            for run_id in run_ids:
                after.await_status(run_id, "finished")
                assert len(scene.provider.acts_of(run_id)) == 1
        assert set(children) <= set(worker.children())


def test_an_outcome_whose_statement_is_cancelled_is_no_death(scene: Scene) -> None:
    """By a time limit of the role's, or by an administrator: the run is handed back and goes on."""
    scene.worker("w", concurrency=1, beat=True)
    scene.gates.close("last")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("last", run_id)

    cut: list[str] = []
    with psycopg.connect(scene.database_url) as holder:
        holder.execute("LOCK TABLE celegraph.runs IN SHARE MODE")
        scene.gates.open("last")
        # First the checkpoint of the last step, then the outcome that comes of it.
        while not any("-- running -> whatever the outcome says" in query for query in cut):
            cut.append(cut_what_waits_for(holder, scene.conn))

    assert scene.await_status(run_id, "finished").crash_count == 0
    assert "abandoned" in scene.kinds(run_id)
    assert len(scene.provider.acts_of(run_id)) == 1


@pytest.fixture
def plain_url(database_url: str) -> Iterator[str]:
    """The test's database for a role of its own that is no superuser."""
    parts, role = urlsplit(database_url), f"plain_{urlsplit(database_url).path[-8:]}"
    name = sql.Identifier(role)
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'plain'").format(name))
        conn.execute(sql.SQL("GRANT ALL ON SCHEMA celegraph TO {}").format(name))
        for kind in ("TABLES", "SEQUENCES", "FUNCTIONS"):
            grant = sql.SQL("GRANT ALL ON ALL {} IN SCHEMA celegraph TO {}")
            conn.execute(grant.format(sql.SQL(kind), name))
        yield urlunsplit(parts._replace(netloc=f"{role}:plain@{parts.hostname}:{parts.port}"))
        conn.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(name))
        conn.execute(sql.SQL("DROP ROLE {}").format(name))


def test_runs_wait_while_the_database_has_no_connection_left(
    database_url: str, plain_url: str, broker_url: str, tmp_path: Path
) -> None:
    role = urlsplit(plain_url).username
    with Scene(database_url, broker_url, tmp_path) as scene:
        worker = scene.worker("w", env=scene.env(database_url=plain_url), beat=True)
        scene.conn.execute(f'ALTER ROLE "{role}" CONNECTION LIMIT 0'.encode())
        scene.conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,)
        )
        run_id = scene.begin("retried")
        eventually(lambda: "too many connections for role" in worker.log)
        assert scene.run(run_id).status == "ready"

        scene.conn.execute(f'ALTER ROLE "{role}" CONNECTION LIMIT -1'.encode())

        scene.await_status(run_id, "finished")
        assert len(scene.provider.acts_of(run_id)) == 1
        assert "crashed" not in scene.kinds(run_id)


REFUSING = """
CREATE FUNCTION celegraph.disk_full() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
"""
TABLES = ("runs", "run_leases", "run_events", "effects", "checkpoints", "checkpoint_writes")


@pytest.mark.parametrize("gate", ["two", "pay:call"])
def test_a_full_disk_in_the_middle_of_a_run_costs_time_and_nothing_else(scene: Scene, gate: str) -> None:
    worker = scene.worker("w", beat=True)
    scene.gates.close(gate)
    run_id = scene.begin("retried")
    scene.gates.await_arrival(gate, run_id)

    with psycopg.connect(scene.database_url, autocommit=True) as conn:
        conn.execute(REFUSING)
        for table in TABLES:
            conn.execute(
                f"CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON celegraph.{table}"
                " FOR EACH ROW EXECUTE FUNCTION celegraph.disk_full()".encode()
            )
        scene.gates.open(gate)
        eventually(lambda: "No space left on device" in worker.log)
        with pytest.raises(psycopg.errors.DiskFull):
            start_run.delay("steps", {}, run_id="refused")
        conn.execute("DROP FUNCTION celegraph.disk_full() CASCADE")

    scene.await_status(run_id, "finished", within=60)
    assert len(scene.provider.acts_of(run_id)) == 1


def test_a_database_that_has_become_read_only_costs_time_and_nothing_else(scene: Scene) -> None:
    worker = scene.worker("w", beat=True)
    scene.gates.close("pay:call")
    run_id = scene.begin("retried")
    scene.gates.await_arrival("pay:call", run_id)
    name = urlsplit(scene.database_url).path[1:]
    with psycopg.connect(scene.database_url, autocommit=True) as conn:
        conn.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode())
        end_our_backends(conn)
        scene.gates.open("pay:call")
        eventually(lambda: "ReadOnlySqlTransaction" in worker.log)

        conn.execute("SET default_transaction_read_only = off")
        conn.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only'.encode())
        end_our_backends(conn)

    scene.await_status(run_id, "finished", within=60)
    assert len(scene.provider.acts_of(run_id)) == 1
    assert worker.running


def test_a_crash_and_a_drain_through_a_session_pooler(
    database_url: str, broker_url: str, tmp_path: Path
) -> None:
    with pgbouncer(database_url, "session") as url, Scene(url, broker_url, tmp_path) as scene:
        first = scene.worker("first", beat=True)
        scene.gates.close("pay:acted")
        crashed = scene.begin("retried")
        arrival = scene.gates.await_arrival("pay:acted", crashed)
        kill_and_await(arrival.pid)
        scene.gates.open("pay:acted")
        scene.await_status(crashed, "finished")

        scene.gates.close("two")
        drained = scene.begin("retried")
        scene.gates.await_arrival("two", drained)
        scene.worker("second", beat=True)
        first.send(signal.SIGTERM)
        eventually(lambda: "Warm shutdown" in first.log)
        scene.gates.open("two")

        scene.await_status(drained, "finished")
        assert scene.trail.steps(drained) == ["one", "two", "pay", "last"]
        assert [scene.kinds(run_id).count("crashed") for run_id in (crashed, drained)] == [1, 0]
        for run_id in (crashed, drained):
            assert len(scene.provider.acts_of(run_id)) == 1
