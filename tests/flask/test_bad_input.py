"""Whatever is wrong with a request: a clear answer, and nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

import celegraph
from celegraph.ledger.approvals import Approval
from tests.flask.shop import Person, Shop, Visitor, run_path, words
from tests.support.waiting import eventually


@pytest.fixture
def asked(shop: Shop) -> Approval:
    """An open question about a refund."""
    shop.start("refunds", "order")
    return shop.question("order")


def _is_untouched(shop: Shop, asked: Approval) -> bool:
    now = shop.question(asked.run_id)
    return (now.status, now.args, now.args_hash, now.note) == ("open", asked.args, asked.args_hash, None)


def test_second_click_is_told_who_was_first_and_changes_nothing(
    shop: Shop, ada: Visitor, asked: Approval
) -> None:
    shop.people["bob"] = Person("bob")
    bob = shop.visitor("bob")
    bob.open(f"/approvals/{asked.approval_id}")
    ada.decide(asked, "approve", note="first")

    late = bob.decide(asked, "reject", note="second")

    assert late.status_code == 409
    assert "already approved by ada at 20" in words(late)
    assert "Your click changed nothing." in words(late)
    kept = shop.question("order")
    assert (kept.status, kept.decided_by, kept.note) == ("approved", "ada", "first")


def test_many_clicks_at_once_have_one_winner(shop: Shop, asked: Approval) -> None:
    names = [f"person-{n}" for n in range(8)]
    shop.people |= {name: Person(name) for name in names}

    visitors = {name: shop.visitor(name) for name in names}
    for visitor in visitors.values():
        visitor.open(f"/approvals/{asked.approval_id}")

    def click(name: str) -> int:
        return visitors[name].decide(asked, "approve" if name < "person-4" else "reject").status_code

    with ThreadPoolExecutor(len(names)) as pool:
        answers = list(pool.map(click, names))

    assert sorted(answers) == [303] + [409] * 7
    assert shop.question("order").decided_by == names[answers.index(303)]


def test_click_after_the_deadline_is_told_so(shop: Shop, ada: Visitor) -> None:
    shop.start("refunds", "silent", deadline="1ms")
    asked = shop.question("silent")
    eventually(lambda: celegraph.get_approval(asked.approval_id).overdue)
    # From the tab in which the question was still open.
    late = ada.post(f"/approvals/{asked.approval_id}/decide", {"verb": "approve"}, page="/runs/silent")

    assert late.status_code == 409
    assert "The deadline of this question passed at 20" in words(late)
    assert shop.question("silent").decided_by is None


def test_deciding_without_permission_is_refused(shop: Shop, asked: Approval) -> None:
    shop.people |= {
        "viewer": Person("viewer", [("view", "refunds")]),
        "operator": Person("operator", [("view", "*"), ("operate", "*")]),
        "elsewhere": Person("elsewhere", [("view", "asking"), ("decide", "asking")]),
    }

    def status(name: str) -> int:
        # The token of a page that this person may see.
        visitor = shop.visitor(name)
        return visitor.decide(asked, "approve").status_code

    assert "Your answer" not in words(shop.visitor("viewer").get(f"/approvals/{asked.approval_id}"))
    assert {name: status(name) for name in ("viewer", "operator", "elsewhere")} == {
        "viewer": 403,
        "operator": 403,
        "elsewhere": 403,
    }
    assert _is_untouched(shop, asked)


@pytest.mark.parametrize(("rights", "expected"), [([("view", "*")], 403), ([("operate", "asking")], 404)])
def test_deciding_and_operating_with_a_valid_form_need_the_permission(
    shop: Shop, asked: Approval, rights: list[tuple[str, str]], expected: int
) -> None:
    shop.people["both"] = Person("both")
    visitor = shop.visitor("both")
    decision = f"/approvals/{asked.approval_id}/decide"
    page = f"/approvals/{asked.approval_id}"
    # The page was loaded while it was allowed.
    visitor.get(page)
    token = visitor.get(page).text.split('celegraph_token" value="')[1].split('"')[0]
    shop.people["both"] = Person("both", rights)  # type: ignore[arg-type]

    def post(path: str, **form: str) -> int:
        fields = {**form, "celegraph_token": token}
        return visitor.client.post(f"/agents{path}", data=fields, headers=visitor.headers).status_code

    assert post(decision, verb="approve") == expected
    assert post("/runs/order/act", verb="cancel") == expected
    assert post("/runs/order/resolve", verb="skip", key="cg-1") == expected
    assert _is_untouched(shop, asked)
    assert celegraph.get_run("order").status == "waiting"


def test_nobody_sees_nothing(shop: Shop, asked: Approval) -> None:
    nobody = shop.visitor("")

    for path in ("/", "/runs", "/runs/order", "/runs/order.json", f"/approvals/{asked.approval_id}"):
        answer = nobody.get(path)
        assert answer.status_code == 403, path
        assert "order" not in words(answer), path
    assert nobody.client.post("/agents/runs/order/act", data={"verb": "cancel"}).status_code == 403
    assert celegraph.get_run("order").status == "waiting"


@pytest.mark.parametrize("token", [None, "", "forged", "forged\0", "ä" * 100])
def test_form_without_the_sessions_token_is_refused(
    shop: Shop, ada: Visitor, asked: Approval, token: str | None
) -> None:
    ada.get(f"/approvals/{asked.approval_id}")
    form = {"verb": "approve"} | ({"celegraph_token": token} if token is not None else {})

    for path in (f"/approvals/{asked.approval_id}/decide", "/runs/order/act", "/runs/order/resolve"):
        answer = ada.client.post(f"/agents{path}", data=form, headers=ada.headers)
        assert answer.status_code == 403
        assert "This form has expired" in words(answer)
    assert _is_untouched(shop, asked)


def test_token_of_another_session_is_no_token(shop: Shop, ada: Visitor, asked: Approval) -> None:
    other = shop.visitor().get(f"/approvals/{asked.approval_id}").text
    token = other.split('celegraph_token" value="')[1].split('"')[0]

    answer = ada.client.post(
        f"/agents/approvals/{asked.approval_id}/decide",
        data={"verb": "approve", "celegraph_token": token},
        headers=ada.headers,
    )

    assert answer.status_code == 403
    assert _is_untouched(shop, asked)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"verb": "edit", "arg:cents": "many"}, "cents must be a whole number, like '1990'"),
        ({"verb": "edit", "arg:cents": "19.5"}, "cents must be a whole number"),
        ({"verb": "edit", "arg:cents": "9" * 5000}, "cents must be a whole number"),
        ({"verb": "edit", "arg:amount": "NaN"}, "amount must be a decimal number"),
        ({"verb": "edit", "arg:notify": "perhaps"}, "notify must be true or false"),
        ({"verb": "edit", "arg:order": "nul\0"}, "NUL"),
        ({"verb": "edit", "arg:note": "x" * 30_000}, "too long"),
        ({"verb": "edit", "arg:unknown": "1"}, "No argument was changed."),
        ({"verb": "edit"}, "No argument was changed."),
        ({"verb": "approve", "note": "x" * 10_001}, "The note has 10,001 letters; 10,000 are possible."),
        ({"verb": "approve", "note": "nul\0"}, "Note contains a NUL character"),
    ],
)
def test_forms_that_do_not_fit_are_refused_with_the_reason(
    shop: Shop, ada: Visitor, asked: Approval, form: Mapping[str, str], said: str
) -> None:
    answer = ada.decide(asked, **form)

    assert answer.status_code == 422
    assert said in words(answer)
    assert _is_untouched(shop, asked)


@pytest.mark.parametrize("verb", ["", "answer", "happened", "APPROVE", "<b>", "expire"])
def test_answers_that_the_question_does_not_take_are_refused(
    shop: Shop, ada: Visitor, asked: Approval, verb: str
) -> None:
    answer = ada.decide(asked, verb)

    assert answer.status_code == 400
    assert _is_untouched(shop, asked)


@pytest.mark.parametrize(
    "form", [{"value": ""}, {"value": "{", "as_json": "yes"}, {"value": "[" * 5000, "as_json": "yes"}]
)
def test_empty_and_broken_answers_are_refused(shop: Shop, ada: Visitor, form: dict[str, str]) -> None:
    shop.start("asking", "where")
    asked = shop.question("where")

    assert ada.decide(asked, "answer", **form).status_code == 422
    assert shop.question("where").status == "open"


@pytest.mark.parametrize("size", [400_000, 1_048_576])
def test_a_megabyte_of_note_is_refused(shop: Shop, ada: Visitor, asked: Approval, size: int) -> None:
    answer = ada.decide(asked, "approve", note="<p>" * (size // 3))

    assert answer.status_code in (413, 422)
    assert "Nothing was changed" in words(answer)
    assert _is_untouched(shop, asked)


def test_decisions_on_unknown_and_closed_approvals(shop: Shop, ada: Visitor, asked: Approval) -> None:
    unknown = ada.post("/approvals/ap-unknown/decide", {"verb": "approve"}, page="/runs/order")
    strange = ada.post("/approvals/ap~'%00/decide", {"verb": "approve"}, page="/runs/order")
    celegraph.cancel_run("order")
    closed = ada.decide(asked, "approve")

    assert (unknown.status_code, strange.status_code) == (404, 404)
    assert closed.status_code == 409
    assert "already cancelled with its run" in words(closed)
    assert shop.question("order").status == "cancelled"


@pytest.mark.parametrize(("cut", "end"), [(-1, ""), (-4, "AAAA"), (None, ".x"), (14, "x")])
def test_forged_links_open_nothing(shop: Shop, asked: Approval, cut: int | None, end: str) -> None:
    path = shop.link(asked)[:cut] + end
    visitor = shop.visitor("")

    for answer in (visitor.get(path), visitor.client.post(path, data={"verb": "approve"})):
        assert answer.status_code == 404
        assert "order" not in words(answer).replace("on its way", "")
    assert _is_untouched(shop, asked)


def test_link_that_was_used_shows_what_was_decided_and_decides_nothing_more(
    shop: Shop, asked: Approval
) -> None:
    path = shop.link(asked)
    visitor = shop.visitor("")
    visitor.client.post(path, data={"verb": "reject"})

    again = visitor.client.post(path, data={"verb": "approve"})

    assert again.status_code == 409
    assert "already rejected by bob@example.com" in words(again)
    assert "This question was rejected by bob@example.com" in words(visitor.get(path))
    assert shop.question("order").status == "rejected"


def test_getting_a_link_never_decides(shop: Shop, asked: Approval) -> None:
    visitor = shop.visitor("")

    for query in ("", "?verb=approve", "?done=1", "?full=prompt", "?full=arguments"):
        assert visitor.get(shop.link(asked) + query).status_code == 200
    assert visitor.client.head(shop.link(asked)).status_code == 200
    assert visitor.get(shop.link(asked) + "?full=nothing").status_code == 404
    assert _is_untouched(shop, asked)


def test_actions_that_do_not_fit_the_runs_state_change_nothing(
    shop: Shop, ada: Visitor, asked: Approval
) -> None:
    for verb in ("retry", "release", "resume"):
        answer = ada.post("/runs/order/act", {"verb": verb})
        assert answer.status_code == 409, verb
        assert f"The run cannot {verb} any more. It is waiting now." in words(answer)
    assert ada.post("/runs/order/act", {"verb": "explode"}).status_code == 400
    assert celegraph.get_run("order").status == "waiting"


def test_effect_of_another_run_cannot_be_resolved_from_here(shop: Shop, ada: Visitor) -> None:
    shop.start("mailing", "mail")
    shop.start("asking", "other")
    key = str(shop.question("mail").idempotency_key)

    answer = ada.post("/runs/other/resolve", {"key": key, "verb": "skip"})

    assert answer.status_code == 404
    assert celegraph.get_effect(key).status == "pending"
    assert ada.post("/runs/mail/resolve", {"key": key, "verb": "maybe"}).status_code == 400
    assert ada.post("/runs/mail/resolve", {"key": "cg-unknown", "verb": "skip"}).status_code == 404


def test_doubt_whose_effect_was_settled_meanwhile(shop: Shop, ada: Visitor) -> None:
    shop.start("mailing", "mail")
    key = str(shop.question("mail").idempotency_key)
    ada.open("/runs/mail")
    celegraph.confirm_effect(key)

    answer = ada.post("/runs/mail/resolve", {"key": key, "verb": "skip"})

    assert answer.status_code == 409
    assert "it is confirmed: what has happened cannot be undone here" in words(answer)


@pytest.mark.parametrize(
    "path",
    [
        "/runs/unknown",
        "/runs/~%%%",
        "/runs/~AA",
        "/runs/unknown.json",
        "/runs/unknown/input.txt",
        "/runs/order/secrets.txt",
        "/approvals/ap-unknown",
        "/approvals/ap-unknown/prompt.txt",
        "/static/pages.py",
        "/link/x",
    ],
)
def test_unknown_addresses_are_answered_with_a_page(
    shop: Shop, ada: Visitor, asked: Approval, path: str
) -> None:
    answer = ada.get(path)

    assert answer.status_code == 404
    assert answer.headers["Content-Security-Policy"]
    assert "<h1>" in answer.text


@pytest.mark.parametrize(
    "query",
    [
        "after=x",
        "after=e30",
        "after=WzEsMl0",
        "before=%00",
        "q=%00",
        "tag=noequals",
        "q=" + "x" * 300,
    ],
)
def test_damaged_queries_are_answered_with_what_to_do(shop: Shop, ada: Visitor, query: str) -> None:
    path = "/" if query.startswith("after") else "/runs"

    assert ada.get(f"{path}?{query}").status_code == 400


def test_filters_that_mean_nothing_are_no_filters(shop: Shop, ada: Visitor, asked: Approval) -> None:
    for query in ("kind=<b>", "agent=<script>", "status=odd"):
        for path in ("/", "/runs"):
            page = ada.get(f"{path}?{query}")
            assert page.status_code == 200
            assert "<b>" not in page.text


def test_run_id_in_an_address_is_not_trusted(shop: Shop, ada: Visitor) -> None:
    assert ada.get(run_path("<script>alert(1)</script>")).status_code == 404


def test_database_that_does_not_answer_is_said_so(shop: Shop, ada: Visitor, asked: Approval) -> None:
    from celegraph.ledger.pool import close_pools

    close_pools()
    shop.installation.override(database_url="postgresql://nobody@127.0.0.1:1/none")

    answer = ada.get("/")

    assert answer.status_code == 503
    assert "The database does not answer" in words(answer)
    assert "127.0.0.1" not in answer.text
