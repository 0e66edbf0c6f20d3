"""F105: quick reconnects leave a worker that is up and takes nothing.  It runs, or the check turns red."""

from __future__ import annotations

import time
from pathlib import Path

from celegraph.cli import check_workers
from celegraph.dev.home import Home
from celegraph.dev.valkey import Valkey
from celegraph.ledger.keys import lock_key
from celegraph.tasks.installation import installation
from tests.support.doctor import asked_doctor
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.workers import supervised

RESTARTS = 5
WITHIN = 60.0


def test_after_five_restarts_of_redis_a_run_runs_or_the_check_is_red(
    database_url: str, tmp_path: Path
) -> None:
    with (
        Valkey(Home.passing(in_memory=True), fsync=False) as broker,
        Scene(database_url, broker.url, tmp_path) as scene,
    ):
        worker = scene.worker("w", concurrency=1, beat=True)
        began = time.monotonic()
        for number in range(RESTARTS):
            # The subject: so many restarts in ten seconds.
            time.sleep(max(0.0, began + 2 * number - time.monotonic()))
            broker.restart()

        run_id = scene.begin("retried")
        try:
            supervised(worker, lambda: scene.run(run_id).status == "finished", WITHIN)
        except AssertionError:
            assert not asked_doctor(scene)["ok"]
        else:
            assert len(scene.provider.acts_of(run_id)) == 1


def test_a_worker_that_is_up_and_takes_nothing_turns_the_check_red(scene: Scene) -> None:
    scene.worker("deaf", concurrency=1)
    # Nothing that it does with the run's doorbells leads anywhere, which looks the same from outside.
    scene.conn.execute("SELECT pg_advisory_lock(%s)", (lock_key("r-1"),))
    scene.begin("retried", run_id="r-1")
    scene.conn.execute("UPDATE runs SET updated_at = updated_at - interval '70 seconds'")

    found = asked_doctor(scene)

    assert not found["ok"]
    backlog = next(check for check in found["checks"] if check["name"] == "backlog")
    assert "queue not consumed: 1 ready" in backlog["says"]
    assert 70 <= backlog["numbers"]["oldest_s"] < 200

    def told() -> list[str]:
        said = [check.says for check in check_workers.checks(installation(), overdue=True)]
        return [words for words in said if "is not consumed" in words]

    # Not in the seconds in which it tries for the lock.
    (words,) = eventually(told, within=60)
    assert "celegraph is not consumed: deaf@" in words
    assert "1 free slots" in words
