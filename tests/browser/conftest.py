"""Both shops, open, and a real browser to walk through them."""

from __future__ import annotations

import importlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from examples.shop.stage import Stage
from tests.browser.visitor import PICTURES, Visitor, Visits

# What a browser would otherwise do by itself has no place in a test.
_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_HOW = "no chromium: apt-get install chromium, or set CELEGRAPH_CHROMIUM to the path of one"


def chromium() -> str:
    """The browser.  Where it is missing tests are skipped, and in CI they fail."""
    found = (
        os.environ.get("CELEGRAPH_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(_HOW)
        pytest.skip(_HOW)
    return found


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One process for all tests; each visitor has cookies of their own.

    Not for the session: while it is open this thread has a running loop, and other tests want their own.
    """
    executable = chromium()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable, args=list(_QUIET))
        yield launched
        launched.close()


@pytest.fixture(scope="module", params=["django_shop", "flask_shop"])
def shop(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Stage]:
    """One of the two shops with everything it runs on."""
    with pytest.MonkeyPatch.context() as only_here:
        # The import sets it for this process, and a worker that another test starts would inherit it.
        only_here.setenv("DJANGO_SETTINGS_MODULE", "examples.django_shop.settings")
        found = importlib.import_module(f"examples.{request.param}.__main__").SHOP
    # A port that no shop of somebody's uses meanwhile.
    with Stage(found, port=0) as stage:
        yield stage


@pytest.fixture
def visits(shop: Stage, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Visits]:
    """People who visit the shop in this test; what each saw last is kept as a picture when it fails."""
    name = re.sub(r"\W+", "-", request.node.name)
    made = Visits(shop, browser, PICTURES / name)
    yield made
    made.close()


@pytest.fixture
def customer(visits: Visits) -> Visitor:
    """Signed in."""
    return visits.sign_in("customer")


@pytest.fixture
def manager(visits: Visits) -> Visitor:
    """Signed in, in another browser."""
    return visits.sign_in("manager")


@pytest.fixture(scope="session", autouse=True)
def _fresh_pictures() -> None:
    shutil.rmtree(PICTURES, ignore_errors=True)
    Path(PICTURES).mkdir(parents=True)
