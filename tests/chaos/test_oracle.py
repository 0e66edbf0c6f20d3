"""The oracle can fail: every rule of it is broken once, and it says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from psycopg import Rollback, errors

from celegraph import decide
from tests.chaos.chaos import CELERY, SETTINGS
from tests.chaos.oracle import Q, judge
from tests.chaos.people import Person, settled
from tests.chaos.role import watch
from tests.chaos.shapes import AGENTS
from tests.support.process import kill_and_await
from tests.support.scene import Scene

# Each breaks the rule of its name, for a run that is over.
BREAKS = {
    "stuck": "UPDATE runs SET status = 'ready', finished_at = NULL, output = NULL, ring_at = ledger_now()",
    "stuck_intents": "UPDATE effects SET status = 'failed', error = '{}' WHERE mode = 'outbox'",
    "stuck_answers": "UPDATE approvals SET consumed_at = NULL",
    "stuck_locks": "SELECT pg_advisory_lock(lock_key) FROM runs",
    "stale_owners": "INSERT INTO run_events (run_id, epoch, kind) SELECT run_id, 1, 'leased' FROM runs",
    "stale_events": "INSERT INTO run_events (run_id, epoch, kind)"
    " SELECT run_id, 0, 'effect reserved' FROM runs",
    "stale_writes": "INSERT INTO witness (run_id, what, fence, epoch)"
    " SELECT run_id, 'checkpoints', '', 1 FROM runs",
    "stale_heads": "DELETE FROM run_events WHERE kind = 'checkpoint'",
    "stale_forks": "UPDATE checkpoints SET parent_checkpoint_id = 'one' WHERE checkpoint_ns = ''",
    "doubled_decisions": "INSERT INTO run_events (run_id, kind, data)"
    " SELECT run_id, kind, data FROM run_events WHERE kind = 'decided'",
    "doubled_payments": "UPDATE approvals SET effect_key = approval_id",
    "lost_runs": "UPDATE runs SET status = 'failed', output = NULL",
    "act without a row": "DELETE FROM effects",
    "act whose row denies it": "UPDATE effects SET status = 'failed', error = '{}'",
    "recorded, but not done": "UPDATE effects SET idempotency_key = idempotency_key || 'x'",
    "output": """UPDATE runs SET output = output || '{"paid": []}'""",
}
# The fence has no say in what is broken on purpose.
_WITHOUT_TRIGGERS = "SET LOCAL session_replication_role = replica"


@pytest.fixture(scope="module")
def over(
    module_database_url: str, module_broker_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """A scene in which one run has gone well and is over."""
    directory = tmp_path_factory.mktemp("oracle")
    made = Scene(
        module_database_url, module_broker_url, directory, settings=SETTINGS, agents=AGENTS, celery=CELERY
    )
    with made as scene:
        watch(scene.conn)
        scene.worker("w1", start=False).launch()
        scene.control().await_ready()
        for agent in ("outbox", "allowed"):
            scene.begin(agent, run_id=f"{agent}-1")
        decide(scene.question("allowed-1", within=60).approval_id, "approve", by="test")
        assert settled(scene, Person(scene, 1), within=60)
        yield scene


@contextmanager
def broken(scene: Scene, how: str) -> Iterator[None]:
    """For the block's length; everything is as before afterwards."""
    with scene.conn.transaction():
        scene.conn.execute(_WITHOUT_TRIGGERS)
        scene.conn.execute(how.encode())
        yield
        raise Rollback
    scene.conn.execute("SELECT pg_advisory_unlock_all()")


def test_nothing_is_found_where_nothing_is_wrong(over: Scene) -> None:
    assert judge(over, ["outbox-1", "allowed-1"]) == []


@pytest.mark.parametrize("rule", BREAKS)
def test_every_rule_finds_what_breaks_it(over: Scene, rule: str) -> None:
    with broken(over, BREAKS[rule]):
        found = judge(over, ["outbox-1", "allowed-1"])

    assert rule in {violation.rule for violation in found}


def test_there_is_a_break_for_every_query() -> None:
    assert {name for name, _ in Q} <= set(BREAKS)


def test_a_run_that_start_run_promised_is_missed(over: Scene) -> None:
    found = judge(over, ["never-written"])

    assert [(v.kind, v.run_id) for v in found] == [("lost", "never-written")]


def test_a_stale_session_is_found_when_the_fence_is_gone(over: Scene) -> None:
    conn = over.conn
    conn.execute("SELECT set_config('celegraph.fence', 'outbox-1:1', false)")
    stale = (
        "INSERT INTO checkpoints SELECT thread_id, checkpoint_ns, checkpoint_id || 'x', checkpoint_id, type,"
        " checkpoint, metadata FROM checkpoints WHERE thread_id = 'outbox-1'"
        " ORDER BY checkpoint_id DESC LIMIT 1"
    )
    with pytest.raises(errors.Error) as refused:
        conn.execute(stale)
    with conn.transaction():
        conn.execute("ALTER TABLE checkpoints DISABLE TRIGGER celegraph_fence")
        conn.execute(stale)
        found = judge(over, [])
        raise Rollback

    assert refused.value.sqlstate == "CG001"
    assert {"stale_writes", "stale_heads"} <= {violation.rule for violation in found}


def test_an_agent_that_pays_past_the_ledger_is_found(over: Scene) -> None:
    over.gates.close("careless:acted", "careless-1")
    over.begin("careless", run_id="careless-1")
    pid = over.gates.await_arrival("careless:acted", "careless-1", within=60).pid
    kill_and_await(pid)
    over.gates.open("careless:acted", "careless-1")
    over.await_status("careless-1", "finished", within=60)

    found = [v for v in judge(over, []) if v.run_id == "careless-1"]

    assert ("duplicates", "act") in {(v.kind, v.rule) for v in found}
    assert ("lost", "act without a row") in {(v.kind, v.rule) for v in found}
