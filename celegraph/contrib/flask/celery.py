"""A Celery app for a Flask app: its configuration, and an application context around every task."""

from __future__ import annotations

from typing import Any

from celery import Celery, Task
from flask import Flask


def celery_init_app(app: Flask, **options: Any) -> Celery:
    """The pattern of Flask's documentation, once: configured from `app.config["CELERY"]`, the default app of
    the process, found again as `app.extensions["celery"]`.

    Nodes and effects run inside an application context of `app`.  `options` go to `Celery(...)`.
    """

    class FlaskTask(Task):  # type: ignore[type-arg]  # celery-types wants parameters, Celery's class has none
        """Inside an application context: extensions work in nodes as in views."""

        abstract = True

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            with app.app_context():
                return self.run(*args, **kwargs)

    celery: Celery = Celery(app.name, task_cls=FlaskTask, **options)
    celery.config_from_object(app.config.get("CELERY", {}))
    celery.set_default()
    app.extensions["celery"] = celery
    return celery
