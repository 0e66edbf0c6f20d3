"""The streaming view in a real ASGI server, with what projects have: ATOMIC_REQUESTS and compression."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.django.support import Project
from tests.support.live import WebServer
from tests.support.waiting import eventually

SETTINGS = {
    "ROOT_URLCONF": "tests.django.live",
    "ALLOWED_HOSTS": ["*"],
    "MIDDLEWARE": ["django.middleware.gzip.GZipMiddleware"],
}
ME = {"X-Who": "pack"}


@pytest.fixture
def site(migrated: Project) -> Project:
    return migrated.having(database={"ATOMIC_REQUESTS": True}, CELERY_TASK_ALWAYS_EAGER=True, **SETTINGS)


@pytest.fixture
def web(site: Project, tmp_path: Path) -> Iterator[WebServer]:
    with WebServer("tests.django.live:application", directory=tmp_path, env=site.environment) as server:
        yield server


def ids(body: str) -> list[str]:
    return [line.removeprefix("id: ") for line in body.splitlines() if line.startswith("id: ")]


@pytest.mark.parametrize("road", ["runs", "later"])
def test_who_may_listen_hears_the_run_to_its_end_and_is_told_when_there_is_no_more(
    site: Project, web: WebServer, road: str
) -> None:
    run_id = site.scene("event_scenes.eager_run")
    url = f"{web.url}/{road}/{run_id}/events"

    heard = httpx.get(url, headers=ME)

    assert heard.status_code == 200
    assert heard.headers["content-type"].startswith("text/event-stream")
    assert '"event": "admitted"' in heard.text
    assert heard.text.rstrip().splitlines()[-2] == "event: end"
    assert httpx.get(url, headers=ME | {"Last-Event-ID": ids(heard.text)[-1]}).status_code == 204
    again = httpx.get(url, headers=ME | {"Last-Event-ID": ids(heard.text)[0]})
    assert ids(again.text) == ids(heard.text)[1:]


def test_strangers_and_wrong_requests_get_a_clear_answer(site: Project, web: WebServer) -> None:
    run_id = site.scene("event_scenes.eager_run")
    url = f"{web.url}/runs/{run_id}/events"

    assert httpx.get(url).status_code == 404
    assert httpx.get(url.replace(run_id, "nobody"), headers=ME).status_code == 404
    assert httpx.post(url, headers=ME).status_code == 405
    wrong = httpx.get(url, headers=ME | {"Last-Event-ID": "x"})
    assert (wrong.status_code, "not a cursor" in wrong.text) == (400, True)
    eventually(lambda: "Traceback" not in web.log)


def test_a_wsgi_host_is_told_to_poll(site: Project) -> None:
    status, text = site.scene("event_scenes.over_wsgi")

    assert status == 501
    assert "poll" in text
