"""Staff in the admin and on the pages, by way of Django's own test client; see `run_scene`."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

import celegraph
from celegraph.contrib.django.models import Effect, Run
from tests.django.people import logged_in, person
from tests.django.project.shop.models import Order
from tests.django.runs import doubted, put, waiting_run

_RUNS = "admin:celegraph_run_changelist"
_EFFECTS = "admin:celegraph_effect_changelist"


def _lists(client: Client) -> dict[str, int]:
    models = ("run", "effect", "approval", "event")
    return {m: client.get(reverse(f"admin:celegraph_{m}_changelist")).status_code for m in models}


def _act(client: Client, run_id: str, action: str, name: str = _RUNS, **more: str) -> str:
    given = {"action": action, "_selected_action": run_id, **more}
    return client.post(reverse(name), given, follow=True).content.decode()


# -- the admin -------------------------------------------------------------------------------------


def admin_is_closed() -> dict[str, Any]:
    """Staff without a permission, and with that to see only."""
    run_id = waiting_run()
    nobody, viewer = logged_in(person()), logged_in(person("view_run"))
    seen = viewer.get(reverse(_RUNS)).content.decode()
    page = viewer.get(reverse("admin:celegraph_run_change", args=[run_id]))
    _act(viewer, run_id, "cancel")
    return {
        "nobody": {
            **_lists(nobody),
            "index": "celegraph" in nobody.get(reverse("admin:index")).content.decode(),
        },
        "viewer": {**_lists(viewer), "sees": run_id in seen, "offered": "Cancel" in seen},
        "page": [page.status_code, 'name="_save"' in page.content.decode(), run_id in page.content.decode()],
        "add": viewer.get(reverse("admin:celegraph_run_add")).status_code,
        "delete": viewer.get(reverse("admin:celegraph_run_delete", args=[run_id])).status_code,
        "after": celegraph.get_run(run_id).status,
    }


def admin_finds() -> dict[str, list[str]]:
    """Which of three runs a search or filter leaves."""
    for run_id, status in (("r-one", "waiting"), ("r-two", "failed"), ("s-three", "paused")):
        put(waiting_run(run_id=run_id), status) if status != "waiting" else waiting_run(run_id=run_id)
    client = logged_in(person(superuser=True))

    def found(query: str, name: str = _RUNS) -> list[str]:
        text = client.get(f"{reverse(name)}?{query}").content.decode()
        return [run_id for run_id in ("r-one", "r-two", "s-three") if f">{run_id}<" in text]

    return {
        "all": found(""),
        "search": found("q=r-"),
        "status": found("status__exact=failed"),
        "agent": found("agent=pack"),
        "questions": found("q=r-one", "admin:celegraph_approval_changelist"),
        "events": found("q=s-three", "admin:celegraph_event_changelist"),
    }


def admin_operates() -> dict[str, Any]:
    """Every action on a run that it fits, and one on a run that it does not."""
    client = logged_in(person("view_run", "operate_run", name="olga"))
    verbs = {
        "cancel": waiting_run(),
        "pause": waiting_run(),
        "resume": put(waiting_run(), "paused"),
        "retry": put(waiting_run(), "failed"),
        "release": put(waiting_run(), "quarantined"),
    }
    for verb, run_id in verbs.items():
        _act(client, run_id, verb)
    left = waiting_run()
    said = _act(client, left, "retry")
    asked = celegraph.list_approvals(run_id=left)[0]
    questions = client.get(reverse("admin:celegraph_approval_changelist")).content.decode()
    return {
        "after": {verb: celegraph.get_run(run_id).status for verb, run_id in verbs.items()},
        "reason": celegraph.get_run(verbs["cancel"]).reason,
        "refused": f"annot retry run &#x27;{left}&#x27;: it is waiting" in said,
        "left": celegraph.get_run(left).status,
        "link": f"/agents/approvals/{asked.approval_id}" in questions,
    }


def admin_resolves() -> dict[str, Any]:
    """The action asks first; only the answer on its page resolves."""
    client = logged_in(person("view_run", "operate_run", name="olga"))
    key = doubted(waiting_run(), '{"to": "ada\\u202e"}')
    page = _act(client, key, "resolve", _EFFECTS)
    before = Effect.objects.get(pk=key).status
    _act(client, key, "resolve", _EFFECTS, answer="happened", ref="re_1", note="looked")
    after = Effect.objects.get(pk=key)
    again = _act(client, key, "resolve", _EFFECTS, answer="skip")
    return {
        "asks": "Did it happen?" in page and "never call again" in page,
        "hides nothing": "ada\\u202e" in page and "ada\u202e" not in page,
        "before": before,
        "after": [after.status, after.provider_ref],
        "again": "what has happened cannot be undone here" in again,
    }


# -- the pages -------------------------------------------------------------------------------------


def pages_are_closed() -> dict[str, Any]:
    """Nobody signed in; somebody without a permission; somebody who may only see."""
    run_id = waiting_run()
    asked = celegraph.list_approvals(run_id=run_id)[0]
    approval = reverse("celegraph:approval", args=[asked.approval_id])
    decide = reverse("celegraph:decide", args=[asked.approval_id])
    live = reverse("celegraph:run_live", args=[run_id])
    stranger, nobody, viewer = Client(), logged_in(person()), logged_in(person("view_run"))
    inbox = nobody.get(reverse("celegraph:inbox"))
    return {
        "stranger": [stranger.get(approval).headers["Location"] == f"/accounts/login/?next={approval}"],
        "stranger posts": stranger.post(decide, {"verb": "approve"}).status_code,
        "stranger's script": stranger.get(live).status_code,
        "style": stranger.get(reverse("celegraph:asset", args=["pages.css"])).status_code,
        "nobody": [inbox.status_code, run_id in inbox.content.decode(), nobody.get(approval).status_code],
        "viewer": [viewer.get(approval).status_code, viewer.post(decide, {"verb": "approve"}).status_code],
        "after": celegraph.get_approval(asked.approval_id).status,
    }


def pages_decide() -> dict[str, Any]:
    """A form without our mark, the form, and the form again from a second tab."""
    asked = celegraph.list_approvals(run_id=waiting_run())[0]
    decide = reverse("celegraph:decide", args=[asked.approval_id])
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("view_run", "decide_approval", name="mia"))
    forged = client.post(decide, {"verb": "approve"}).status_code
    still = celegraph.get_approval(asked.approval_id).status
    page = client.get(reverse("celegraph:approval", args=[asked.approval_id]))
    form = {"verb": "approve", "csrfmiddlewaretoken": client.cookies["csrftoken"].value}
    answer, late = client.post(decide, form), client.post(decide, form)
    huge = client.post(decide, {**form, "note": "x" * 3_000_000})
    stands = celegraph.get_approval(asked.approval_id)
    return {
        "forged": [forged, still],
        "policy": page.headers["Content-Security-Policy"].partition(";")[0],
        "answer": [answer.status_code, stands.status, stands.decided_by],
        "late": [late.status_code, "already approved by mia" in late.content.decode()],
        "huge": [huge.status_code, "too large" in huge.content.decode()],
        "get": client.get(decide).status_code,
        "head": client.head(reverse("celegraph:inbox")).content.decode(),
        "head_of_a_form": client.head(decide).status_code,
    }


def rule(user: User, action: str, agent: str | None) -> bool:
    """CELERY_CELEGRAPH["may"]: everybody may do everything with `refund` and nothing else."""
    return agent == "refund"


class OfRefunds:
    """A backend that grants permissions for one agent, as django-rules does."""

    def authenticate(self, request: object, **_: object) -> None:
        """Nobody signs in here."""

    def has_perm(self, user: User, perm: str, obj: object = None) -> bool:
        """For the agent `refund`, whoever it is."""
        return obj == "refund" and perm.startswith("celegraph.")


def one_agent() -> dict[str, Any]:
    """What somebody sees who was given one agent of two."""
    theirs, other = waiting_run(), celegraph.start_run.delay("pack", {"order": "x"}).id
    client = logged_in(person())
    lists = client.get(reverse(_RUNS)).content.decode()
    runs = client.get(reverse("celegraph:runs")).content.decode()
    _act(client, other, "cancel")
    _act(client, theirs, "cancel")
    return {
        "admin": [theirs in lists, other in lists],
        "pages": [theirs[:8] in runs, other[:8] in runs],
        "page": client.get(reverse("celegraph:run", args=[other])).status_code,
        "after": [celegraph.get_run(theirs).status, celegraph.get_run(other).status],
    }


def session() -> dict[str, str]:
    """The cookie of somebody who may decide, and a question for them."""
    asked = celegraph.list_approvals(run_id=waiting_run())[0]
    client = logged_in(person("view_run", "decide_approval", name="mia"))
    return {"cookie": client.cookies["sessionid"].value, "approval": asked.approval_id}


def seen(*run_ids: str) -> dict[str, list[Any]]:
    """Of each run: whether its order is there, and its status."""
    return {
        run_id: [
            Order.objects.filter(number=run_id).exists(),
            Run.objects.filter(pk=run_id).values_list("status", flat=True).first(),
        ]
        for run_id in run_ids
    }


def decided_by(approval_id: str) -> str | None:
    """Who answered."""
    return celegraph.get_approval(approval_id).decided_by
