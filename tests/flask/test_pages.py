"""What people see and do: every page, on real runs of real graphs."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from werkzeug.test import TestResponse

import celegraph
from celegraph.contrib.web.pages import CONTENT_SECURITY_POLICY
from celegraph.ledger.for_tests import pass_time
from celegraph.ledger.pool import ledger
from celegraph.tasks.dispatch import dispatch
from tests.flask.agents import NASTY
from tests.flask.shop import Person, Shop, Visitor, run_path, words
from tests.support.waiting import eventually


def test_inbox_lists_open_questions_oldest_first_and_leads_to_each(shop: Shop, ada: Visitor) -> None:
    for run_id in ("first", "second"):
        shop.start("refunds", run_id)

    inbox = ada.get("/")

    assert inbox.status_code == 200
    ids = re.findall(r'href="/agents/approvals/([^"]+)"', inbox.text)
    assert ids == [shop.question(run_id).approval_id for run_id in ("first", "second")]
    assert "2 open questions" in words(inbox)
    assert all(ada.get(f"/approvals/{approval_id}").status_code == 200 for approval_id in ids)


def test_inbox_is_filtered_by_agent_kind_and_deadline(shop: Shop, ada: Visitor) -> None:
    shop.start("refunds", "due", deadline="1ms")
    shop.start("refunds", "early")
    shop.start("asking", "plain")
    shop.start("mailing", "doubtful")

    def listed(query: str) -> set[str]:
        return set(re.findall(r'<span class="mono">([^<]+)</span>', ada.get(f"/?{query}").text))

    assert listed("") == {"due", "early", "plain", "doubtful"}
    assert listed("agent=asking") == {"plain"}
    assert listed("kind=doubt") == {"doubtful"}
    assert listed("overdue=yes") == {"due"}
    assert listed("agent=asking&kind=doubt") == set()


def test_inbox_does_not_take_a_question_that_stays_open_for_one_that_is_over(
    shop: Shop, ada: Visitor
) -> None:
    shop.start("refunds", "over", deadline="1ms")
    shop.start("mailing", "doubtful")
    with ledger(shop.installation.config) as conn:
        conn.execute("UPDATE approvals SET deadline_at = created_at WHERE run_id = 'doubtful'")

    over, doubtful = re.findall(r'<li class="card.*?</li>', ada.get("/").text, re.S)

    assert "deadline passed" in over
    assert "still to be answered" not in over
    assert "deadline passed, still to be answered" in doubtful
    assert ada.decide(shop.question("doubtful"), "happened", ref="smtp-1").status_code == 303


def test_lists_go_on_page_by_page_without_a_row_twice_or_lost(shop: Shop, ada: Visitor) -> None:
    expected = [shop.start("asking", f"run-{n:03}") for n in range(60)]

    for start, cell in (
        ("/", r'<span class="mono">([^<]+)</span>'),
        ("/runs", r'class="mono" href="[^"]*">([^<]+)<'),
    ):
        seen: list[str] = []
        path: str | None = start
        while path is not None:
            page = ada.get(path)
            seen += re.findall(cell, page.text)
            more = re.search(r'href="([^"]+)" rel="next"', page.text)
            path = more[1].replace("&amp;", "&") if more else None
            # Somebody answers and starts between two pages: keys do not shift as offsets would.
            if start == "/" and len(seen) == 25:
                ada.decide(shop.question("run-000"), "approve")
        assert sorted(seen) == expected, start


def test_question_shows_what_is_bound_who_asked_and_what_follows(shop: Shop, ada: Visitor) -> None:
    shop.start("refunds", "order-1")

    page = ada.get(f"/approvals/{shop.question('order-1').approval_id}")

    said = words(page)
    for part in (
        "Approve refund?",
        "Refund 19.90 EUR?",
        "agent refunds",
        "run order-1",
        "amount 19.90",
        "cents 1990",
        "notify true",
        "second <b>line</b>",
        "This pays for one call of refund with exactly these arguments.",
        "If nobody answers by then, the agent goes on without it.",
    ):
        assert part in said
    assert 'href="/agents/runs/order-1"' in page.text
    assert re.search(r'<time datetime="20\d\d-\d\d-\d\dT[\d:]+Z">', page.text)


def test_approving_pays_for_the_call_and_shows_what_it_has_come_to(shop: Shop, ada: Visitor) -> None:
    shop.start("refunds", "order-2")

    answer = ada.decide(shop.question("order-2"), "approve", note="seen the pictures")

    assert answer.status_code == 303
    decided = shop.question("order-2")
    assert (decided.status, decided.decided_by, decided.note) == ("approved", "ada", "seen the pictures")
    assert "Your answer is recorded: approved." in words(ada.get(answer.headers["Location"]))
    assert shop.drive("order-2").output["receipt"] == "receipt for 1990"
    assert "sent refund, reference re_order-2" in words(ada.get(f"/approvals/{decided.approval_id}"))


def test_rejecting_is_told_to_the_agent(shop: Shop, ada: Visitor) -> None:
    shop.start("refunds", "order-3")

    ada.decide(shop.question("order-3"), "reject")

    assert shop.drive("order-3").output["receipt"] == "rejected"


def test_edited_arguments_keep_their_types_and_are_what_is_called(shop: Shop, ada: Visitor) -> None:
    shop.start("refunds", "order-4")
    asked = shop.question("order-4")

    answer = ada.decide(
        asked,
        "edit",
        **{
            "arg:amount": "5.50",
            "arg:cents": "550",
            "arg:note": "first line\r\nsecond <b>line</b>",
            "arg:notify": "false",
            "arg:order": "order-4",
        },
    )

    assert answer.status_code == 303
    assert shop.drive("order-4").output["receipt"] == "receipt for 550"
    stored = shop.question("order-4").args
    # What a browser does to line ends is no edit.
    assert stored["note"] == "first line\nsecond <b>line</b>"
    assert (stored["amount"], stored["notify"]) == ({"$decimal": "5.50"}, False)


@pytest.mark.parametrize(
    ("fields", "given"),
    [({"value": "Lyon"}, "Lyon"), ({"value": '{"city": "Lyon"}', "as_json": "yes"}, {"city": "Lyon"})],
)
def test_plain_interrupts_are_answered_in_words_or_json(
    shop: Shop, ada: Visitor, fields: dict[str, str], given: object
) -> None:
    shop.start("asking", "where")

    ada.decide(shop.question("where"), "answer", **fields)

    assert shop.drive("where").output["answer"] == given


def test_several_actions_of_one_question_are_shown_one_by_one(shop: Shop, ada: Visitor) -> None:
    shop.start("acting", "actions")

    said = words(ada.get(f"/approvals/{shop.question('actions').approval_id}"))

    assert "send_mail Argument Value to ada@example.com" in said
    assert "close_ticket Argument Value ticket 7" in said


def test_several_actions_are_decided_one_by_one(shop: Shop, ada: Visitor) -> None:
    shop.start("acting", "actions")

    fields = {"do:0": "edit", "args:0": '{"to": "bob@example.com"}', "do:1": "reject", "message:1": "not yet"}
    answer = ada.decide(shop.question("actions"), "each", **fields)

    assert answer.status_code == 303
    assert shop.drive("actions").output["answer"]["decisions"] == [
        {"type": "edit", "edited_action": {"name": "send_mail", "args": {"to": "bob@example.com"}}},
        {"type": "reject", "message": "not yet"},
    ]


def test_asking_again_shows_what_is_other_than_before(shop: Shop, ada: Visitor) -> None:
    shop.start("changing", "again")
    ada.decide(shop.question("again"), "approve")
    shop.drive("again")

    said = words(ada.get(f"/approvals/{shop.question('again').approval_id}"))

    assert "the last time it was approved by ada" in said
    assert "cents changed" in said
    assert re.search(r"cents changed (\d+) (\d+)", said)
    assert "note the same the same" in said


def test_doubts_are_answered_with_the_providers_reference(shop: Shop, ada: Visitor) -> None:
    shop.start("mailing", "mail")
    asked = shop.question("mail")
    assert "Did send_mail happen?" in words(ada.get(f"/approvals/{asked.approval_id}"))

    answer = ada.decide(asked, "happened", ref="smtp-77")

    assert answer.status_code == 303
    assert shop.drive("mail").output["receipt"] == "smtp-77"


def test_run_page_tells_why_and_draws_the_course(shop: Shop, ada: Visitor) -> None:
    shop.start("refunds", "order-5")
    ada.decide(shop.question("order-5"), "approve")
    shop.drive("order-5")

    page = ada.get(run_path("order-5"))

    said = words(page)
    assert "Run 'order-5' finished" in said
    assert "approved" in said
    assert "re_order-5" in said
    (picture,) = re.findall(r"<svg.*?</svg>", page.text, re.S)
    assert "2 attempts" in picture
    assert "attempt 1" in picture
    assert "refund: sent after" in picture
    assert "question about refund: approved by ada" in picture
    # A style attribute would be refused by the page's own policy.
    assert "style=" not in page.text


def test_runs_are_filtered_by_status_agent_part_of_the_id_and_tag(shop: Shop, ada: Visitor) -> None:
    shop.start("refunds", "Order/1 ä?")
    shop.start("failing", "broken-1")
    with shop.app.app_context():
        celegraph.start_run.delay("asking", {}, run_id="tagged", tags={"customer": "42"})

    def listed(query: str) -> set[str]:
        return set(re.findall(r'class="mono" href="[^"]*">([^<]+)<', ada.get(f"/runs?{query}").text))

    assert listed("") == {"Order/1 ä?", "broken-1", "tagged"}
    assert listed("status=failed") == {"broken-1"}
    assert listed("agent=asking") == {"tagged"}
    assert listed("q=oRDER/1") == {"Order/1 ä?"}
    assert listed("q=%25") == set()
    assert listed("tag=customer%3D42") == {"tagged"}
    assert listed("tag=customer%3D4") == set()


@pytest.mark.parametrize("run_id", ["a/b", "..", "x.json", "q?a=1&b", "100%", "~tilde", "ä ö", "C:\\x", "-"])
def test_every_run_id_has_its_page_and_its_actions(shop: Shop, ada: Visitor, run_id: str) -> None:
    shop.start("asking", run_id)

    assert words(ada.get(run_path(run_id))).count(run_id) >= 1
    assert _news(ada.get(run_path(run_id) + ".json")) == ("waiting", False)
    assert ada.post(run_path(run_id) + "/act", {"verb": "cancel", "note": "not needed"}).status_code == 303
    cancelled = celegraph.get_run(run_id)
    assert (cancelled.status, cancelled.reason) == ("cancelled", "cancel asked by ada: not needed")


def test_runs_are_paused_resumed_and_retried_from_their_page(shop: Shop, ada: Visitor) -> None:
    shop.start("asking", "stop-and-go")
    shop.start("failing", "broken-2")

    assert "Pause" in words(ada.get(run_path("stop-and-go")))
    ada.post(run_path("stop-and-go") + "/act", {"verb": "pause"})
    assert celegraph.get_run("stop-and-go").status == "paused"
    ada.post(run_path("stop-and-go") + "/act", {"verb": "resume"})
    # Made ready, rung, driven by the eager task, and waiting for its answer again.
    assert celegraph.get_run("stop-and-go").status == "waiting"
    ada.post(run_path("broken-2") + "/act", {"verb": "retry"})
    assert [e.data.get("by") for e in celegraph.trace_run("broken-2") if e.kind == "retried"] == ["ada"]


def test_doubt_of_a_cancelled_run_is_resolved_from_its_page(shop: Shop, ada: Visitor) -> None:
    shop.start("mailing", "mail-2")
    celegraph.cancel_run("mail-2")
    key = shop.question("mail-2").idempotency_key
    eventually(lambda: "in doubt" in words(ada.get(run_path("mail-2"))))

    answer = ada.post(run_path("mail-2") + "/resolve", {"key": key, "verb": "happened", "ref": "smtp-5"})

    assert answer.status_code == 303
    assert celegraph.get_effect(str(key)).provider_ref == "smtp-5"


def test_effect_that_was_given_up_is_tried_again_from_its_runs_page(shop: Shop, ada: Visitor) -> None:
    shop.start("enqueueing", "letter")
    shop.start("asking", "other")
    for _ in range(20):
        dispatch(shop.installation)
        with ledger(shop.installation.config) as conn:
            pass_time(conn, "letter", timedelta(hours=1))
    page = run_path("letter")
    assert "given up" in words(ada.get(page))
    (key,) = re.findall(r'name="key" value="([^"]+)"', ada.get(page).text)
    assert ada.post("/runs/other/release-effect", {"key": key}, page=page).status_code == 404
    assert "given up" in words(ada.get(page))

    answer = ada.post(f"{page}/release-effect", {"key": key}, page=page)

    assert answer.status_code == 303
    assert "the effect is tried again" in words(ada.get(answer.headers["Location"]))
    # The first one was its node's.
    released = [e.data.get("by") for e in celegraph.trace_run("letter") if e.kind == "effect released"]
    assert released == [None, "ada"]
    assert ada.post(f"{page}/release-effect", {"key": key}, page=page).status_code == 404


def test_signed_link_shows_its_question_and_decides_as_its_person(shop: Shop) -> None:
    shop.start("refunds", "order-6")
    asked = shop.question("order-6")
    stranger = shop.visitor("")

    shown = stranger.get(shop.link(asked))

    assert shown.status_code == 200
    assert "Refund 19.90 EUR?" in words(shown)
    # The way into the other pages is not for somebody who has only a link.
    assert 'href="/agents/runs' not in shown.text
    assert shop.question("order-6").status == "open"
    answer = stranger.client.post(shop.link(asked), data={"verb": "approve", "note": "from the train"})
    assert answer.status_code == 303
    decided = shop.question("order-6")
    assert (decided.status, decided.decided_by, decided.note) == (
        "approved",
        "bob@example.com",
        "from the train",
    )
    assert "Your answer is recorded" in words(stranger.get(answer.headers["Location"]))


def test_lists_and_pages_show_only_agents_that_may_be_seen(shop: Shop) -> None:
    shop.people["eve"] = Person("eve", [("view", "asking")])
    shop.start("refunds", "hidden")
    shop.start("asking", "shown")
    eve = shop.visitor("eve")

    for path in ("/", "/runs", "/?agent=refunds", "/runs?agent=refunds"):
        page = eve.get(path).text
        assert ">shown<" in page
        assert ">hidden<" not in page
        assert "refunds" not in page
    hidden = shop.question("hidden").approval_id
    for path in ("/runs/hidden", "/runs/hidden.json", "/runs/hidden/input.txt", f"/approvals/{hidden}"):
        assert eve.get(path).status_code == 404, path
    assert eve.get(f"/approvals/{hidden}/prompt.txt").status_code == 404
    # Not even that there is one.
    assert eve.get("/runs/hidden").text == eve.get("/runs/none").text
    assert eve.get(f"/approvals/{hidden}").text == eve.get("/approvals/ap-none").text


def test_empty_lists_say_what_to_do(shop: Shop, ada: Visitor) -> None:
    shop.people["new"] = Person("new", [])

    assert "When an agent asks, its question appears here." in words(ada.get("/"))
    assert "start_run.delay(" in words(ada.get("/runs"))
    assert "No question fits this filter" in words(ada.get("/?kind=doubt"))
    assert "No run fits" in words(ada.get("/runs?status=failed"))
    assert "No agent is yours to see" in words(shop.visitor("new").get("/"))


def test_pages_say_when_no_sweep_runs(shop: Shop, ada: Visitor) -> None:
    assert "No sweep has ever run here." in words(ada.get("/"))


def test_every_page_allows_nothing_but_its_own_files(shop: Shop, ada: Visitor) -> None:
    shop.start("refunds", "order-7")
    asked = shop.question("order-7")
    paths = ["/", "/runs", "/runs/order-7", f"/approvals/{asked.approval_id}", shop.link(asked), "/runs/none"]

    for path in paths:
        page = ada.get(path)
        assert page.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
        assert page.headers["Cache-Control"] == "private, no-store"
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert not re.search(r"<style|<script(?! src=)|\sstyle=|\son\w+=|javascript:", page.text), path


def test_static_files_are_kept_for_ever_under_the_url_of_their_content(shop: Shop, ada: Visitor) -> None:
    for path in re.findall(r'(?:href|src)="(/agents/static/[^"]+)"', ada.get("/").text):
        found = ada.get(path)
        assert found.status_code == 200
        assert "immutable" in found.headers["Cache-Control"]
        assert ada.get(path.split("?")[0]).headers["Cache-Control"] == "no-cache"
    assert ada.get("/static/../pages.py").status_code == 404


def test_what_a_model_wrote_is_never_markup_and_hides_nothing(shop: Shop, ada: Visitor) -> None:
    shop.start("refunds", f"run {NASTY[:30]}", prompt=NASTY)
    shop.start("failing", "failed")
    shop.start("mailing", "mailed")
    asked = shop.question(f"run {NASTY[:30]}")
    shop.people["<b>mallory</b>"] = Person("<b>mallory</b>")

    for path in (
        "/",
        "/runs",
        run_path(asked.run_id),
        f"/approvals/{asked.approval_id}",
        "/runs/failed",
        "/runs/mailed",
    ):
        page = shop.visitor("<b>mallory</b>").get(path).text
        assert "<script>" not in page
        assert "<b>" not in page
        # The mark that turns the direction of writing is written out.
        assert "\u202e" not in page
    assert "\\u202e" in ada.get(f"/approvals/{asked.approval_id}").text


def test_a_megabyte_is_cut_and_shown_whole_as_plain_text(shop: Shop, ada: Visitor) -> None:
    text = "<i>" + "x" * 1_000_000
    shop.start("asking", "large", prompt=text)
    asked = shop.question("large")

    for path in ("/", run_path("large"), f"/approvals/{asked.approval_id}"):
        page = ada.get(path)
        assert len(page.data) < 60_000, path
        assert "<i>" not in page.text
    whole = ada.get("/runs/large/input.txt")
    assert text in whole.text
    assert whole.content_type == "text/plain; charset=utf-8"
    assert "sandbox" in whole.headers["Content-Security-Policy"]
    assert "see all 1,0" in words(ada.get(run_path("large")))


def test_run_page_is_asked_again_cheaply_and_answers_304_until_something_changes(
    shop: Shop, ada: Visitor
) -> None:
    shop.start("refunds", "order-8")
    first = ada.get("/runs/order-8.json")
    tag = first.headers["ETag"]

    assert _news(first) == ("waiting", False)
    # The version counts the minute, too: within one of them nothing else changes.
    within = eventually(lambda: _within_a_minute(ada))
    assert within == (304, b"")
    ada.decide(shop.question("order-8"), "approve")
    shop.drive("order-8")
    changed = ada.get("/runs/order-8.json", **{"If-None-Match": tag})
    assert changed.status_code == 200
    assert _news(changed) == ("finished", True)
    last = ada.get("/runs/order-8.json", **{"If-None-Match": changed.headers["ETag"]})
    assert last.status_code == 304


def _news(response: TestResponse) -> tuple[str, bool]:
    found: dict[str, Any] = json.loads(response.text)
    assert found["version"]
    return found["status"], found["ended"]


def _within_a_minute(ada: Visitor) -> tuple[int, bytes] | None:
    started = datetime.now(UTC)
    tag = ada.get("/runs/order-8.json").headers["ETag"]
    again = ada.get("/runs/order-8.json", **{"If-None-Match": f'W/"other", {tag}'})
    same = datetime.now(UTC).replace(second=0, microsecond=0) == started.replace(second=0, microsecond=0)
    return (again.status_code, again.data) if same else None


def test_page_of_a_run_that_waits_asks_for_news_and_that_of_an_ended_one_does_not(
    shop: Shop, ada: Visitor
) -> None:
    shop.start("asking", "waits")
    shop.start("failing", "ended")

    assert 'data-poll="/agents/runs/waits.json"' in ada.get("/runs/waits").text
    assert "data-poll" not in ada.get("/runs/ended").text


def test_expired_question_is_nobodys_no(shop: Shop, ada: Visitor) -> None:
    shop.start("refunds", "silent", deadline="1ms")
    asked = shop.question("silent")
    eventually(lambda: celegraph.get_approval(asked.approval_id).overdue)

    said = words(ada.get(f"/approvals/{asked.approval_id}"))

    assert "has passed; nobody answered in time." in said
    assert "Your answer" not in said


def test_link_ends_with_its_time(shop: Shop) -> None:
    shop.start("refunds", "order-9")
    expired = shop.link(shop.question("order-9"), expires_at=datetime.now(UTC) - timedelta(seconds=1))

    page = shop.visitor("").get(expired)

    assert page.status_code == 410
    assert "This link has expired" in words(page)
