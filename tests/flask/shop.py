"""A Flask shop whose runs are driven in the test's own process, and people who look at them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

from flask import Flask, Request
from werkzeug.test import TestResponse

import celegraph
from celegraph.contrib.flask import Action, Viewer, celegraph_blueprint, celery_init_app
from celegraph.contrib.web.addresses import segment
from celegraph.ledger.approvals import Approval
from celegraph.ledger.runs import Run
from celegraph.tasks.eager import drive_inline
from celegraph.tasks.installation import Installation, find
from celegraph.tasks.links import sign_link
from tests.flask.agents import AGENTS

SECRET = "a secret of the tests, long enough"
_TOKEN = re.compile(r'name="celegraph_token" value="([^"]+)"')


@dataclass(frozen=True)
class Person:
    """Somebody of the shop, with what they may do per agent ("*": every agent)."""

    name: str
    rights: Sequence[tuple[Action, str]] = (("view", "*"), ("decide", "*"), ("operate", "*"))

    def may(self, action: Action, agent: str) -> bool:
        """See `Viewer`."""
        return (action, agent) in self.rights or (action, "*") in self.rights


class Shop:
    """The app, its runs and its visitors."""

    def __init__(self, database_url: str, **config: Any):
        self.app = Flask("tests.flask.shop")
        self.app.config.update(
            SECRET_KEY=SECRET,
            TESTING=True,
            CELERY={
                "broker_url": "memory://",
                "task_always_eager": True,
                "celegraph": {
                    "database_url": database_url,
                    "link_secret": SECRET,
                    "call_window": "10ms",
                },
            },
        )
        self.app.config.update(config)
        self.people: dict[str, Viewer] = {"ada": Person("ada")}
        celery = celery_init_app(self.app)
        celegraph.install(celery, agents=AGENTS)
        found = find(celery)
        assert found is not None
        self.installation: Installation = found
        self.app.register_blueprint(
            celegraph_blueprint(self.app, authorise=self.authorise, title="Shop"), url_prefix="/agents"
        )

    def authorise(self, request: Request) -> Viewer | None:
        """By a header that only these tests send."""
        return self.people.get(request.headers.get("X-Person", ""))

    def visitor(self, name: str = "ada") -> Visitor:
        """A browser of this person."""
        return Visitor(self, name)

    # -- runs ------------------------------------------------------------------------------------------

    def start(self, agent: str, run_id: str, **input: Any) -> str:
        """Start a run and drive it until it ends or waits."""
        with self.app.app_context():
            celegraph.start_run.delay(agent, {"order": run_id, **input}, run_id=run_id)
        return run_id

    def drive(self, run_id: str) -> Run:
        """Drive it on."""
        with self.app.app_context():
            drive_inline(self.installation, run_id)
        return celegraph.get_run(run_id)

    def question(self, run_id: str) -> Approval:
        """The newest question of the run."""
        return celegraph.list_approvals(status=None, run_id=run_id)[-1]

    def link(self, approval: Approval, person: str = "bob@example.com", **kw: Any) -> str:
        """The path of a signed link."""
        return f"/agents/link/{sign_link(self.installation, approval.approval_id, person, **kw)}"


class Visitor:
    """One browser: its cookies, and the token of the form it was shown last."""

    def __init__(self, shop: Shop, name: str):
        self.client = shop.app.test_client()
        self.headers = {"X-Person": name} if name else {}
        self.token: str | None = None

    def get(self, path: str, **headers: str) -> TestResponse:
        """GET under the blueprint."""
        return self.client.get(_under(path), headers=self.headers | headers)

    def open(self, path: str) -> TestResponse:
        """Load a page and leave it open in a tab: its form can be sent later, whatever has changed."""
        shown = self.get(path)
        if found := _TOKEN.search(shown.text):
            self.token = found[1]
        return shown

    def post(self, path: str, form: dict[str, Any], *, page: str | None = None) -> TestResponse:
        """POST the form of a page that is open, or of `page` (by default the one that it belongs to)."""
        if self.token is None:
            self.open(page or path.removesuffix("/decide").removesuffix("/act").removesuffix("/resolve"))
        fields = {**form, "celegraph_token": self.token} if self.token else form
        return self.client.post(_under(path), data=fields, headers=self.headers)

    def decide(self, asked: Approval, verb: str, **fields: Any) -> TestResponse:
        """Answer a question by its form."""
        return self.post(f"/approvals/{asked.approval_id}/decide", {"verb": verb, **fields})


def _under(path: str) -> str:
    return path if path.startswith("/agents/") else f"/agents{path}"


def run_path(run_id: str) -> str:
    """The path of the run's page."""
    return f"/runs/{segment(run_id)}"


def words(response: TestResponse) -> str:
    """What a reader sees: the page without its markup, blanks squeezed."""
    text = " ".join(unescape(re.sub(r"<[^>]*>", " ", response.text)).split())
    return re.sub(r" (?=[,.;])", "", text)
