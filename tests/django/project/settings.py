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

if "PROJECT_WITH_SITE" in os.environ:
    # What a site has that people log in to.
    INSTALLED_APPS += [
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
        "django.contrib.admin",
    ]
    MIDDLEWARE = [
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ]
    TEMPLATES = [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ]
    ROOT_URLCONF = "tests.django.project.urls"
    ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]
    STATIC_URL = "/static/"

DATABASES["default"].update(json.loads(os.environ.get("PROJECT_DATABASE", "{}")))
globals().update(json.loads(os.environ.get("PROJECT_SETTINGS", "{}")))
