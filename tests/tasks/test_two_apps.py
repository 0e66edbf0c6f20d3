"""Two Celery apps in one process."""

from __future__ import annotations

from celery import Celery

import celegraph

_OURS = ("celegraph.start_run", "celegraph.resume", "celegraph.sweep_leases", "celegraph.escalate_approvals")


def _app(name: str) -> Celery:
    app = Celery(name, set_as_current=False)
    celegraph.install(app, agents={name: f"{name}.agents:graph"})
    app.finalize()
    return app


def test_each_app_has_its_own_tasks_and_a_third_one_has_none() -> None:
    first, second = _app("first"), _app("second")
    third = Celery("third", set_as_current=False)
    third.finalize()

    assert [first.tasks[name].app for name in _OURS] == [first] * len(_OURS)
    assert [second.tasks[name].app for name in _OURS] == [second] * len(_OURS)
    assert not set(_OURS) & set(third.tasks)
