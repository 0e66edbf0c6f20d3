"""Behind real servers: gunicorn speaks WSGI, uvicorn ASGI; every request is a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.django.support import Project
from tests.support.process import Process
from tests.support.scripted import free_port

MISSING = [False, None]
STARTED = [True, "ready"]


class WebServer(Process):
    """The project behind gunicorn or uvicorn; ready when it says so."""

    def __init__(self, kind: str, project: Project, directory: Path):
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        words = {
            "wsgi": ["gunicorn", "-b", f"127.0.0.1:{port}", "--threads", "4", "tests.django.project.wsgi"],
            "asgi": ["uvicorn", "--port", str(port), "tests.django.project.asgi:application"],
        }[kind]
        super().__init__(kind, ["-m", *words], log=directory / "web.log", env=project.environment)

    def is_ready(self) -> bool:
        """It takes requests."""
        return "Booting worker" in self.log or "Application startup complete" in self.log


@pytest.fixture(params=["wsgi", "asgi"])
def server(request: pytest.FixtureRequest, atomic: Project, tmp_path: Path) -> Iterator[WebServer]:
    """Serving."""
    with WebServer(request.param, atomic, tmp_path) as running:
        yield running


@pytest.fixture
def atomic(site: Project) -> Project:
    """ATOMIC_REQUESTS."""
    return site.having(database={"ATOMIC_REQUESTS": True})


def test_a_request_that_fails_takes_its_run_with_it_and_one_that_ends_well_starts_it(
    server: WebServer, atomic: Project
) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        said = {
            view: [
                client.get(view, params={"run": f"{view}-well"}).status_code,
                client.get(view, params={"run": f"{view}-ill", "fail": "1"}).status_code,
            ]
            for view in ("start", "astart")
        }

    assert said == {"start": [200, 500], "astart": [200, 500]}
    assert atomic.scene("site_scenes.seen", "start-well", "start-ill", "astart-well", "astart-ill") == {
        "start-well": STARTED,
        "start-ill": MISSING,
        "astart-well": STARTED,
        "astart-ill": MISSING,
    }


def test_the_pages_decide_behind_a_real_server(server: WebServer, atomic: Project) -> None:
    mia = atomic.scene("site_scenes.session")
    page = f"/agents/approvals/{mia['approval']}"
    with httpx.Client(base_url=server.url, timeout=60, cookies={"sessionid": mia["cookie"]}) as client:
        assert client.get(page).status_code == 200
        form = {"verb": "approve", "csrfmiddlewaretoken": client.cookies["csrftoken"]}
        # httpx sends no Origin, as old browsers do.
        answers = [client.post(f"{page}/decide", data=form).status_code for _ in range(2)]

    assert answers == [303, 409]
    assert atomic.scene("site_scenes.decided_by", mia["approval"]) == "mia"
