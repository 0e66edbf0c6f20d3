"""The Flask app; its Celery app is found by `celery -A examples.flask_shop.app:celery`."""

from __future__ import annotations

import os
from pathlib import Path

from flask import Flask
from flask_wtf import CSRFProtect

import celegraph
from celegraph.contrib.flask import celegraph_blueprint, celery_init_app
from examples.flask_shop.people import authorise
from examples.flask_shop.views import shop
from examples.shop.options import celegraph_options

app = Flask("flask_shop", template_folder=Path(__file__).parents[1] / "shop" / "templates")
app.config.update(
    SECRET_KEY=os.environ["SHOP_SECRET"],
    SESSION_COOKIE_SAMESITE="Lax",
    CELERY={
        "broker_url": os.environ["CELERY_BROKER_URL"],
        "broker_connection_retry_on_startup": True,
        "celegraph": {"database_url": os.environ["SHOP_DATABASE_URL"], **celegraph_options()},
    },
)
CSRFProtect(app)
celery = celery_init_app(app)
celegraph.install(celery, agents={"refund": "examples.flask_shop.agents:graph"})
app.register_blueprint(shop)
app.register_blueprint(celegraph_blueprint(app, authorise=authorise, title="The shop"), url_prefix="/agents")
