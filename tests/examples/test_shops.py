"""`make shop-django` and `make shop-flask`: open until Ctrl-C, and nothing is left behind."""

from __future__ import annotations

import re
import signal
import urllib.request

import pytest

from tests.demo.staging import staged

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("browser")]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("shop", ["django_shop", "flask_shop"])
def test_a_shop_opens_says_how_to_get_in_and_closes_without_a_trace(
    shop: str, end: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A port that no shop of somebody's uses meanwhile.
    monkeypatch.setenv("SHOP_PORT", "0")
    with staged(module=f"examples.{shop}") as running:
        said = "\n".join(running.say_until("Ctrl-C closes the shop"))
        found = re.search(r"shop +(http://127\.0\.0\.1:\d+/)", said)
        assert found is not None
        with urllib.request.urlopen(found[1], timeout=30) as page:
            assert "Your orders" in page.read().decode()
        assert {"customer", "manager", "head"} <= set(re.findall(r"^    (\w+) ", said, re.MULTILINE))

        running.process.send_signal(end)

        assert running.process.wait(60) == 0
        assert running.leftovers() == []
