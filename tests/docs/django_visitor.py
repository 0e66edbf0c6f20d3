"""Plays a visitor and a manager of the README's Django project; run inside it as a script.

visitor.py DATABASE_URL
"""

from __future__ import annotations

import os
import sys
from typing import Any
from urllib.parse import urlsplit

SETTINGS = """
INSTALLED_APPS += ["celegraph.contrib.django"]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", **VISITOR_DATABASE}}
CELERY_BROKER_URL = "memory://"
CELERY_TASK_ALWAYS_EAGER = True
"""


def main(url: str) -> None:
    parts = urlsplit(url)
    database = {
        "NAME": parts.path.lstrip("/"),
        "USER": parts.username,
        "PASSWORD": parts.password,
        "HOST": parts.hostname,
        "PORT": parts.port,
    }
    with open("shop/settings.py", "a") as settings:
        settings.write(f"\nVISITOR_DATABASE = {database!r}\n{SETTINGS}")
    with open("shop/urls.py", "w") as urls:
        urls.write(
            "from django.urls import path\nfrom shop import views\n"
            "urlpatterns = [path('complain', views.complain), path('answer/<approval_id>', views.answer)]\n"
        )
    with open("shop/__init__.py", "w") as package:
        package.write("from shop.celery import app as celery_app\n")
    visit()


def visit() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.test import Client

    settings.ALLOWED_HOSTS = ["testserver"]
    call_command("migrate", verbosity=0)
    client = Client()
    client.force_login(_manager())
    answered: Any = client.post("/complain", {"order": "A-1"}).json()
    assert answered == {"status": "waiting"}, answered

    import celegraph

    (question,) = celegraph.list_approvals()
    decided: Any = client.post(f"/answer/{question.approval_id}", {"verb": "approve"}).json()
    assert decided == {"yours_counts": True, "status": "approved"}, decided
    late: Any = client.post(f"/answer/{question.approval_id}", {"verb": "reject"}).json()
    assert late == {"yours_counts": False, "status": "approved"}, late

    from shop import payments  # type: ignore[import-not-found]

    refunds = len(payments.LOG.read_text().splitlines())
    sys.stdout.write(f"{celegraph.get_run('refund-A-1').status}, refunded {refunds} time\n")


def _manager() -> Any:
    from django.contrib.auth.models import User

    return User.objects.create_user("ana")


if __name__ == "__main__":
    main(sys.argv[1])
