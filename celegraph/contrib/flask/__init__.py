"""Flask: the pages as a blueprint, and the Celery app as Flask's documentation makes it.

Flask comes with `pip install celegraph[flask]` and is imported only here.
"""

from __future__ import annotations

from celegraph.contrib.flask.blueprint import celegraph_blueprint
from celegraph.contrib.flask.celery import celery_init_app
from celegraph.contrib.web.viewer import Action, Viewer

__all__ = ["Action", "Viewer", "celegraph_blueprint", "celery_init_app"]
