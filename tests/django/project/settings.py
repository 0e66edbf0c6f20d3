"""The servers come from the test, and so does what it wants to be different."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import unquote, urlsplit


def _database(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "OPTIONS": {"application_name": "project"},
    }


SECRET_KEY = "only for tests"
USE_TZ = True
TIME_ZONE = "Asia/Kolkata"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["celegraph.contrib.django", "tests.django.project.shop"]
DATABASES = {"default": _database(os.environ["PROJECT_DATABASE_URL"])}
if "PROJECT_OTHER_URL" in os.environ:
    DATABASES["other"] = _database(os.environ["PROJECT_OTHER_URL"])
CELERY_BROKER_URL = os.environ["PROJECT_BROKER_URL"]
CELERY_CELEGRAPH: dict[str, Any] = {"sweep_every": "500ms"}

DATABASES["default"].update(json.loads(os.environ.get("PROJECT_DATABASE", "{}")))
globals().update(json.loads(os.environ.get("PROJECT_SETTINGS", "{}")))
