"""A worker that could not keep a run's promise does not start, and says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from celegraph import start_run
from celegraph.dev.home import Home
from celegraph.dev.valkey import Valkey
from celegraph.errors import BrokerUnsupported, SchemaMissing
from celegraph.tasks.broker import check_broker
from celegraph.tasks.fitness import check_worker
from celegraph.tasks.installation import installation
from tests.support.host import APP, VARIANT
from tests.support.old_redis import claiming_version
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.workers import Worker


def refusal(worker: Worker) -> str:
    """What the worker says when it does not start."""
    worker.launch()
    assert worker.wait() == 1
    return worker.log


@pytest.mark.parametrize("pool", ["gevent", "eventlet", "celery.concurrency.gevent:TaskPool"])
def test_pools_that_share_one_thread_are_refused(scene: Scene, pool: str) -> None:
    with pytest.raises(BrokerUnsupported, match="start the worker with --pool prefork, threads or solo"):
        check_worker(installation(), pool)


def test_an_old_redis_stops_the_worker(scene: Scene) -> None:
    real = str(check_broker(scene.broker_url).version)

    with claiming_version(scene.broker_url, real, "6.0.9") as old:
        said = refusal(scene.worker("w", start=False, env=scene.env() | {"CELERY_BROKER_URL": old}))

    assert "use Redis >= 6.2" in said


def test_a_worker_that_would_drop_our_messages_does_not_start(scene: Scene) -> None:
    env = scene.env() | {VARIANT: "jsonless", "C_FORCE_ROOT": "1"}

    said = refusal(scene.worker("w", start=False, app=APP, env=env))

    assert "accept_content is ['pickle']; add 'json'" in said


def test_without_tables_neither_workers_nor_runs_start(
    empty_database_url: str, broker_url: str, tmp_path: Path
) -> None:
    with Scene(empty_database_url, broker_url, tmp_path) as bare:
        assert "run `celegraph migrate`" in refusal(bare.worker("w", start=False))
        with pytest.raises(SchemaMissing, match="run `celegraph migrate`"):
            start_run.delay("steps", {})


def test_an_agent_that_cannot_be_imported_stops_the_worker_not_the_runs(scene: Scene, tmp_path: Path) -> None:
    module = tmp_path / "broken_shop.py"
    module.write_text(
        "from tests.support.app import make_app\nimport celegraph, os\n"
        "app = make_app(os.environ['CELERY_BROKER_URL'])\n"
        "celegraph.install(app, agents={'broken': 'broken_shop:graph'})\n"
        "def graph(): raise KeyError('SHOP_TOKEN')\n"
    )
    env = scene.env()

    said = refusal(
        scene.worker(
            "w",
            start=False,
            app="broken_shop:app",
            env=env | {"PYTHONPATH": f"{env['PYTHONPATH']}:{tmp_path}"},
        )
    )

    assert "agent 'broken' cannot be loaded: KeyError: 'SHOP_TOKEN'" in said


def test_a_worker_waits_for_a_broker_that_is_down(database_url: str, tmp_path: Path) -> None:
    with Valkey(Home.passing(in_memory=True), fsync=False) as own:
        own.stop()
        with Scene(database_url, own.url, tmp_path) as scene:
            worker = scene.worker("w", start=False)
            worker.launch()
            eventually(lambda: "cannot be used" in worker.log)

            own.start()

            worker.await_ready()
            scene.await_status(scene.begin("steps"), "finished")
