"""The page on Flask is true: its shop opens, for those its `authorise` knows."""

from __future__ import annotations

import json
import re
import sys
from types import ModuleType

import pytest

from tests.docs.blocks import REPOSITORY

PAGE = (REPOSITORY / "docs" / "flask.md").read_text(encoding="utf-8")
(SHOP,) = re.findall(r"```python\n(# shop/app.py\n.*?)```", PAGE, re.DOTALL)


@pytest.mark.usefixtures("whole_process")
def test_the_shop_of_the_page_opens_its_inbox_to_who_has_signed_in(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"broker_url": "memory://", "celegraph": {"database_url": database_url}}
    monkeypatch.setenv("FLASK_CELERY", json.dumps(settings))
    monkeypatch.setenv("FLASK_SECRET_KEY", "a secret of the tests, long enough")
    shop = ModuleType("shop_of_the_page")
    monkeypatch.setitem(sys.modules, shop.__name__, shop)

    exec(SHOP, shop.__dict__)

    client = shop.app.test_client()
    assert client.get("/agents/").status_code == 403
    with client.session_transaction() as session:
        session["name"] = "ada"
    inbox = client.get("/agents/")
    assert inbox.status_code == 200
    assert "Nothing to decide" in inbox.text
