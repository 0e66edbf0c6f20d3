"""The blueprint in a host's app: who must be named, other protections, several apps."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask, abort, redirect
from flask_wtf import CSRFProtect

from celegraph.contrib.flask import celegraph_blueprint
from celegraph.contrib.web import ROUTES
from celegraph.errors import ConfigError
from tests.flask.shop import Person, Shop, words


@pytest.mark.parametrize("given", [{}, {"authorise": None}, {"authorise": True}])
def test_blueprint_without_authorisation_does_not_exist(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"def authorise\(request\)"):
        celegraph_blueprint(**given)


@pytest.mark.parametrize("answer", [True, "ada", object()])
def test_authorisation_that_names_nobody_is_an_error_and_not_an_open_door(shop: Shop, answer: Any) -> None:
    shop.people["ada"] = answer

    with pytest.raises(ConfigError, match="authorise returned"):
        shop.visitor().get("/")


def test_authorisation_may_send_to_the_hosts_sign_in(database_url: str, whole_process: None) -> None:
    shop = Shop(database_url)
    shop.authorise = lambda request: abort(redirect("/sign-in"))  # type: ignore[method-assign]
    app = Flask("other")
    app.register_blueprint(celegraph_blueprint(shop.app, authorise=lambda request: shop.authorise(request)))

    answer = app.test_client().get("/")

    assert (answer.status_code, answer.headers["Location"]) == (302, "/sign-in")


def test_app_without_celery_is_told_what_to_call(whole_process: None) -> None:
    app = Flask("bare")
    app.secret_key = "a secret of the tests"
    app.register_blueprint(celegraph_blueprint(authorise=lambda request: Person("ada")))

    answer = app.test_client().get("/")

    assert answer.status_code == 503
    assert "celery_init_app(app)" in words(answer)


def test_app_without_a_secret_key_is_told_to_set_one(shop: Shop) -> None:
    shop.start("asking", "where")
    shop.app.secret_key = None

    answer = shop.visitor().get(f"/approvals/{shop.question('where').approval_id}")

    assert answer.status_code == 503
    assert "set app.secret_key" in words(answer)


def test_hosts_flask_wtf_finds_its_token_in_our_forms(database_url: str, whole_process: None) -> None:
    shop = Shop(database_url, TESTING=False)
    CSRFProtect(shop.app)
    shop.start("asking", "where")
    asked = shop.question("where")
    visitor = shop.visitor()
    page = visitor.get(f"/approvals/{asked.approval_id}").text
    tokens = {
        name: page.split(f'name="{name}" value="')[1].split('"')[0]
        for name in ("celegraph_token", "csrf_token")
    }

    def post(fields: dict[str, str]) -> int:
        path = f"/agents/approvals/{asked.approval_id}/decide"
        return visitor.client.post(
            path, data={"verb": "approve", **fields}, headers=visitor.headers
        ).status_code

    assert post({"celegraph_token": tokens["celegraph_token"]}) == 400
    assert post({"csrf_token": tokens["csrf_token"]}) == 403
    assert post(tokens) == 303
    # A link's form carries the host's token, too.
    shop.start("asking", "again")
    link = shop.link(shop.question("again"))
    shown = shop.visitor("")
    token = shown.get(link).text.split('name="csrf_token" value="')[1].split('"')[0]
    assert shown.client.post(link, data={"verb": "approve", "csrf_token": token}).status_code == 303


def test_pages_work_under_any_prefix_and_name(shop: Shop) -> None:
    shop.start("asking", "where")
    shop.app.config["APPLICATION_ROOT"] = "/"
    app = Flask("mounted")
    app.secret_key = "a secret of the tests"
    app.register_blueprint(
        celegraph_blueprint(shop.app, authorise=lambda request: Person("ada"), name="workers"),
        url_prefix="/ops",
    )

    page = app.test_client().get("/ops/", base_url="http://localhost/behind")

    assert 'href="/behind/ops/runs"' in page.text
    assert "/agents/" not in page.text


def test_every_route_has_a_view_and_no_other_method(shop: Shop) -> None:
    rules = {
        rule.endpoint.removeprefix("celegraph."): (rule.methods or set()) - {"HEAD", "OPTIONS"}
        for rule in shop.app.url_map.iter_rules()
        if rule.endpoint.startswith("celegraph.")
    }

    assert rules == {route.name: set(route.methods) for route in ROUTES}
