"""A worker beside a host's own: whose queues it serves, and what of the host's stays as it was."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.host import APP, VARIANT, VARIANTS
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.workers import Worker, answered

OURS = {"celegraph", "celegraph.control"}


def host_worker(scene: Scene, variant: str, **how: Any) -> Worker:
    """A worker of a host with this configuration; the test's own process has it, too."""
    scene.app.conf.update(VARIANTS[variant])
    return scene.worker("w", app=APP, env=scene.env() | {VARIANT: variant}, **how)


def consumed(scene: Scene) -> set[str]:
    """The queues that the one worker takes from."""
    answer = answered(lambda: scene.app.control.inspect(timeout=5, limit=1).active_queues())
    assert answer is not None
    return {queue["name"] for queues in answer.values() for queue in queues}


def swept_at(scene: Scene) -> datetime | None:
    """When the last sweep was."""
    row = scene.conn.execute("SELECT at FROM ticks WHERE name = 'sweep'").fetchone()
    return row["at"] if row else None


@pytest.mark.parametrize(
    ("variant", "own"),
    [("plain", "celery"), ("renamed", "shop"), ("routed", "celery"), ("closed", "shop")],
)
def test_a_plain_worker_serves_the_hosts_queue_and_ours(
    scene: Scene, tmp_path: Path, variant: str, own: str
) -> None:
    host_worker(scene, variant, beat=True)

    run_id = scene.begin("steps")
    scene.app.send_task("shop.touch", [str(tmp_path / "touched")])

    scene.await_status(run_id, "finished")
    eventually((tmp_path / "touched").exists)
    assert consumed(scene) == {own} | OURS
    # By beat's messages through the control queue: the main process sweeps only when the last is old.
    first = eventually(lambda: swept_at(scene))
    eventually(lambda: swept_at(scene) != first, within=5)


@pytest.mark.parametrize(
    ("options", "queues"),
    [
        (["-Q", "celegraph.control"], {"celegraph.control"}),
        (["-Q", "celery"], {"celery"}),
        (["-X", "celegraph"], {"celery", "celegraph.control"}),
    ],
)
def test_the_command_line_decides_about_queues(scene: Scene, options: list[str], queues: set[str]) -> None:
    scene.worker("w", options=options)

    assert consumed(scene) == queues


def test_nothing_of_the_hosts_configuration_is_changed(scene: Scene) -> None:
    host_worker(scene, "plain")

    answer = answered(lambda: scene.app.control.inspect(timeout=5, limit=1).conf(with_defaults=True))
    assert answer is not None
    (conf,) = answer.values()

    assert conf["task_queues"] is None
    assert (conf["task_default_queue"], conf["task_routes"]) == ("celery", None)
    assert (conf["task_acks_late"], conf["task_reject_on_worker_lost"]) == (False, None)
    assert (conf["task_serializer"], conf["task_ignore_result"]) == ("json", False)
    assert all(name.startswith("celegraph-") for name in conf["beat_schedule"])


def test_host_settings_that_lose_or_repeat_messages_do_not_touch_runs(scene: Scene) -> None:
    host_worker(scene, "early", beat=True)

    failed, killed = scene.begin("failing"), scene.begin("killing", cents=1)

    scene.await_status(failed, "failed")
    # Not after Celery's three minutes.
    assert scene.await_status(killed, "finished", within=15).output["receipt"] == "survived"
