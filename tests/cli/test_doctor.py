"""celegraph doctor: what it sees, and what it says to do about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from celegraph.cli import check_workers, doctor
from celegraph.cli.check import Check
from celegraph.cli.check_database import checks as database_checks
from celegraph.config import load_config
from celegraph.ledger import health
from celegraph.ledger.connect import connect
from celegraph.ledger.runs import Admission, admit
from celegraph.ledger.sweep import record_tick
from celegraph.tasks.install import fit
from celegraph.tasks.installation import Installation
from celegraph.testing.driver import Driven
from tests.cli.conftest import CommandLine
from tests.support.app import make_app
from tests.support.doctor import asked_doctor
from tests.support.scene import Scene
from tests.support.waiting import eventually


def by_name(checks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in checks}


@pytest.fixture
def ticking(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A ledger whose periodic duties have just run."""
    with connect(load_config({"database_url": database_url})) as conn:
        record_tick(conn, "sweep", {})
        record_tick(conn, "escalate", {})
        yield conn


def test_a_good_database_alone_is_healthy_and_the_rest_is_skipped(
    cli: CommandLine, ticking: psycopg.Connection[Any]
) -> None:
    told = cli.json("doctor")

    assert told["ok"]
    states = {check["name"]: check["state"] for check in told["checks"]}
    assert states.pop("broker, queues, agents") == "skipped"
    assert set(states.values()) == {"ok"}
    assert "give --app" in cli("doctor").stdout


def test_a_missing_database_url_is_an_error(cli: CommandLine) -> None:
    result = CommandLine("")("doctor", "--json")

    assert result.exit_code == 1
    (check,) = json.loads(result.stdout)["checks"]
    assert (check["name"], check["state"]) == ("configuration", "error")


def test_a_database_that_is_down_is_an_error_without_the_password(cli: CommandLine) -> None:
    result = CommandLine("postgresql://u:secret@127.0.0.1:1/x")("doctor")

    assert result.exit_code == 1
    assert "the database cannot be used" in result.stdout
    assert "secret" not in result.output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DROP SCHEMA celegraph CASCADE", "run `celegraph migrate`"),
        ("DELETE FROM celegraph.migrations", "run `celegraph migrate`"),
        ("INSERT INTO celegraph.migrations VALUES (9999, 'future')", "upgrade celegraph here"),
    ],
)
def test_a_schema_that_does_not_fit_is_an_error(
    cli: CommandLine, database_url: str, change: str, said: str
) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute(change.encode())

    result = cli("doctor", "--json")

    assert result.exit_code == 1
    schema = by_name(json.loads(result.stdout)["checks"])["schema"]
    assert schema["state"] == "error"
    assert said in schema["says"]


def test_an_old_postgresql_is_an_error(
    cli: CommandLine, ticking: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "server", lambda conn: health.Server("13.9", 130_009))

    result = cli("doctor")

    assert result.exit_code == 1
    assert "upgrade to PostgreSQL 14 or newer" in result.stdout


@pytest.mark.parametrize(
    ("age", "state", "said"),
    [("1 second", "ok", "ago"), ("12 seconds", "warning", "beat seems down"), ("1 hour", "error", "1 h ago")],
)
def test_the_age_of_the_last_sweep_is_judged(
    cli: CommandLine, ticking: psycopg.Connection[Any], age: str, state: str, said: str
) -> None:
    ticking.execute("UPDATE ticks SET at = now() - %s::interval WHERE name = 'sweep'", (age,))

    result = cli("doctor", "--json")

    sweep = by_name(json.loads(result.stdout)["checks"])["sweep"]
    assert sweep["state"] == state
    assert said in sweep["says"]
    assert result.exit_code == int(state == "error")


def test_a_ledger_that_was_never_swept_is_an_error(cli: CommandLine) -> None:
    result = cli("doctor", "--json")

    assert result.exit_code == 1
    checks = by_name(json.loads(result.stdout)["checks"])
    assert checks["sweep"]["state"] == "error"
    assert "celery -A proj beat" in checks["sweep"]["remedy"]
    assert checks["deadlines"]["state"] == "warning"


@pytest.mark.parametrize(
    ("running", "state", "said"),
    [(0, "error", "queue not consumed: 1 ready"), (1, "warning", "1 ready")],
    ids=["nobody works", "somebody works"],
)
def test_ready_runs_that_nobody_takes_are_told_with_their_age_in_seconds(
    cli: CommandLine,
    ticking: psycopg.Connection[Any],
    waiting: Driven,
    running: int,
    state: str,
    said: str,
) -> None:
    cli("decide", waiting.approvals[0].approval_id, "approve", "--by", "ana")
    assert by_name(cli.json("doctor")["checks"])["backlog"]["state"] == "ok"
    waiting.pass_time("10m")
    for number in range(running):
        admit(ticking, Admission(run_id=f"busy-{number}", agent="a", input={}, max_crashes=3))
        ticking.execute(
            "UPDATE runs SET status = 'running', ring_at = NULL WHERE run_id = %s", (f"busy-{number}",)
        )

    result = cli("doctor", "--json")

    backlog = by_name(json.loads(result.stdout)["checks"])["backlog"]
    assert (backlog["state"], result.exit_code) == (state, int(state == "error"))
    assert f"{said}, the oldest for 10 min; doorbells are 10 min late, 1 never rung" in backlog["says"]
    assert "queue 'celegraph'" in backlog["remedy"]
    numbers = backlog["numbers"]
    assert 600 <= numbers["oldest_s"] < 700
    assert (numbers["ready"], numbers["never_rung"], numbers["running"]) == (1, 1, running)


# -- broker, workers, agents -----------------------------------------------------------------------


@pytest.fixture
def inst(database_url: str, broker_url: str) -> Installation:
    """An app with celegraph, as `--app` finds it."""
    app = make_app(broker_url)
    app.conf.celegraph = {"database_url": database_url}
    return fit(app, {})


def found(inst: Installation) -> dict[str, Check]:
    return {check.name: check for check in check_workers.checks(inst)}


def test_a_good_broker_without_workers_asks_for_workers(inst: Installation) -> None:
    checks = list(check_workers.checks(inst))

    assert [check.state for check in checks if check.name.startswith("broker")] == ["ok", "ok"]
    queues = [check for check in checks if check.name == "queue"]
    assert [check.state for check in queues] == ["error", "error"]
    assert "no worker answered" in queues[0].says
    assert "celery -A proj worker -Q celegraph.control" in queues[1].remedy


def test_a_broker_that_is_down_stops_the_questions(inst: Installation) -> None:
    inst.app.conf.update(broker_url="redis://127.0.0.1:1/0")

    checks = found(inst)

    assert set(checks) == {"checkpoints", "broker"}
    assert "cannot be used" in checks["broker"].says


def test_a_broker_that_forgets_or_evicts_is_warned_of(
    inst: Installation, valkey_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with redis.Redis.from_url(valkey_server.url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            checks = found(inst)
        finally:
            client.config_set("maxmemory-policy", "noeviction")

    assert checks["broker"].state == "warning"
    assert checks["broker"].remedy == "set maxmemory-policy noeviction"


def test_an_untried_broker_is_warned_of(inst: Installation) -> None:
    inst.app.conf.update(broker_url="memory://")

    assert found(inst)["broker"].state == "warning"


def test_a_loosened_msgpack_is_warned_of(inst: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", "false")

    assert found(inst)["checkpoints"].remedy == "unset it"


def test_agents_are_loaded_as_workers_load_them(inst: Installation) -> None:
    agents = fit(inst.app, {"good": "tests.cli.refund:asking", "gone": "no_such_module:graph"})

    good, gone = doctor._agents(agents)

    assert (good.state, gone.state) == ("ok", "error")
    assert "no_such_module" in gone.says


def test_the_database_is_asked_with_the_apps_configuration(inst: Installation) -> None:
    assert "ok" in {check.state for check in database_checks(inst.config)}


def test_with_workers_and_beat_everything_is_well(database_url: str, broker_url: str, tmp_path: Path) -> None:
    with Scene(database_url, broker_url, tmp_path) as scene:
        scene.worker("all", concurrency=1, beat=True)

        def healthy() -> bool:
            found = asked_doctor(scene)
            checks = found["checks"]
            assert {check["state"] for check in checks if check["name"] == "agent"} == {"ok"}
            assert found["ok"] == all(check["state"] != "error" for check in checks)
            return all(check["state"] == "ok" for check in checks)

        assert eventually(healthy, within=60.0)
