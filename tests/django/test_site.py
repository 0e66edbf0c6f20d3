"""Staff in the admin and on the pages: closed by default, per agent, and every change by our functions."""

from __future__ import annotations

import pytest

from tests.django.support import Project

CLOSED = {"run": 403, "effect": 403, "approval": 403, "event": 403}
OPEN = {"run": 200, "effect": 200, "approval": 200, "event": 200}


@pytest.fixture(params=["autocommit", "ATOMIC_REQUESTS"])
def requests(request: pytest.FixtureRequest, site: Project) -> Project:
    """With a transaction around every request, and without."""
    return site.having(database={"ATOMIC_REQUESTS": request.param == "ATOMIC_REQUESTS"})


@pytest.mark.parametrize("schema", ["celegraph", "durable"])
def test_staff_without_a_permission_sees_nothing_and_who_may_see_changes_nothing(
    project: Project, schema: str
) -> None:
    site = project.with_env(PROJECT_WITH_SITE="1").having(CELERY_CELEGRAPH={"schema": schema})
    site.manage("migrate", "--verbosity", "0")

    facts = site.scene("site_scenes.admin_is_closed")

    assert facts["nobody"] == {**CLOSED, "index": False}
    assert facts["viewer"] == {**OPEN, "sees": True, "offered": False}
    assert facts["page"] == [200, False, True]
    assert (facts["add"], facts["delete"], facts["after"]) == (403, 403, "waiting")


def test_the_admin_filters_and_searches(site: Project) -> None:
    facts = site.scene("site_scenes.admin_finds")

    assert set(facts.pop("all")) == {"r-one", "r-two", "s-three"}
    assert set(facts.pop("search")) == {"r-one", "r-two"}
    assert facts == {"status": ["r-two"], "agent": [], "questions": ["r-one"], "events": ["s-three"]}


def test_the_admins_actions_are_our_functions_and_say_what_they_refuse(requests: Project) -> None:
    facts = requests.scene("site_scenes.admin_operates")

    ready = dict.fromkeys(("resume", "retry", "release"), "ready")
    assert facts["after"] == {"cancel": "cancelled", "pause": "paused", **ready}
    assert facts["reason"] == "cancelled by olga"
    assert (facts["refused"], facts["left"], facts["link"]) == (True, "waiting", True)


def test_a_doubt_is_resolved_only_after_the_admin_has_asked(site: Project) -> None:
    facts = site.scene("site_scenes.admin_resolves")

    assert (facts["asks"], facts["hides nothing"], facts["again"]) == (True, True, True)
    assert (facts["before"], facts["after"]) == ("pending", ["sent", "re_1"])


def test_the_pages_are_closed_to_who_was_given_nothing(site: Project) -> None:
    facts = site.scene("site_scenes.pages_are_closed")

    assert facts["stranger"] == [True]
    assert (facts["stranger posts"], facts["stranger's script"], facts["style"]) == (403, 403, 200)
    assert facts["nobody"] == [200, False, 404]
    assert facts["viewer"] == [200, 403]
    assert facts["after"] == "open"


def test_a_decision_takes_our_own_form_and_the_second_is_told_who_was_first(requests: Project) -> None:
    facts = requests.scene("site_scenes.pages_decide")

    assert facts["forged"] == [403, "open"]
    assert facts["policy"] == "default-src 'none'"
    assert facts["answer"] == [303, "approved", "mia"]
    assert facts["late"] == [409, True]
    assert facts["huge"] == [413, True]
    assert (facts["get"], facts["head"], facts["head_of_a_form"]) == (405, "", 405)


@pytest.mark.parametrize("way", ["rule", "backend"])
def test_somebody_with_one_agent_sees_and_operates_that_one(site: Project, way: str) -> None:
    scenes = "tests.django.site_scenes"
    backends = ["django.contrib.auth.backends.ModelBackend", f"{scenes}.OfRefunds"]
    site = site.having(
        **({"CELERY_CELEGRAPH": {"may": f"{scenes}.rule"}} if way == "rule" else {}),
        AUTHENTICATION_BACKENDS=backends if way == "backend" else backends[:1],
    )

    facts = site.scene("site_scenes.one_agent")

    assert facts["admin"] == facts["pages"] == [True, False]
    assert (facts["page"], facts["after"]) == (404, ["cancelled", "ready"])
