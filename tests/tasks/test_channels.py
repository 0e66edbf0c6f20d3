"""What people are told, how, and what a dead provider may not do."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from celegraph import ApprovalPolicy, Step, decide
from celegraph.channels import WebhookChannel
from celegraph.config import load_config
from celegraph.dev.mailbox import SmtpServer, smtp_server
from celegraph.errors import ConfigError
from celegraph.ledger.effect_row import Effect
from celegraph.tasks import periodic
from celegraph.tasks.asked import consequences
from celegraph.tasks.channels.webhook import signature
from celegraph.tasks.installation import Installation, find
from celegraph.tasks.links import read_link
from celegraph.tasks.notices import notice_of, tell
from celegraph.tasks.wording import worded
from tests.support.asking import open_questions
from tests.support.scene import Scene
from tests.support.scripted import free_port
from tests.support.told import DIRECTORY, everything_told
from tests.support.waiting import eventually

SECRET = "a-secret-of-more-than-16-characters"
TEAM = ApprovalPolicy(deadline="2h", notify=[Step(to="team@shop.example")])
HOOKED = ApprovalPolicy(deadline="2h", notify=[Step(to="ops", by="hook")])
EVIL = "<script>alert(1)</script> & pay\u202ehcum 'more'\r\nBcc: everybody@shop.example"


@pytest.fixture
def scene(database_url: str, broker_url: str, tmp_path: Path) -> Iterator[Scene]:
    with Scene(database_url, broker_url, tmp_path) as made:
        yield made


@pytest.fixture
def mail(tmp_path: Path) -> Iterator[SmtpServer]:
    with smtp_server(tmp_path / "mail", refuse=["nobody@shop.example"]) as server:
        yield server


def set_up(scene: Scene, **channels: dict[str, Any]) -> Installation:
    """The scene's installation with these channels and the site's links."""
    scene.configure(channels=json.dumps(channels), site_url="https://shop.example/agents", link_secret=SECRET)
    inst = find(scene.app)
    assert inst is not None
    inst.override(**scene.app.conf.celegraph)
    return inst


def smtp_channel(mail: SmtpServer, **more: Any) -> dict[str, Any]:
    return {"kind": "smtp", "url": mail.url, "sender": "agents@shop.example", **more}


def notices(scene: Scene) -> list[Effect]:
    rows = scene.conn.execute(
        "SELECT * FROM effects WHERE tool LIKE 'notify:%' ORDER BY created_at"
    ).fetchall()
    return [Effect.from_row(row) for row in rows]


@contextmanager
def receiver(*statuses: int) -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """An HTTP server that answers with these, then 200; with what it was sent."""
    got: list[tuple[dict[str, str], bytes]] = []
    left = list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append(({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(left.pop(0) if left else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", got
    finally:
        server.shutdown()
        server.server_close()


def test_a_mail_leads_its_reader_to_the_question_and_shows_no_arguments(
    scene: Scene, mail: SmtpServer
) -> None:
    inst = set_up(scene, email=smtp_channel(mail))
    (approval_id,) = open_questions(scene, TEAM, ["r-1"], prompt="Refund 19.99 EUR?")
    scene.conn.execute('UPDATE approvals SET args = \'{"iban": "DE12-secret"}\'')
    (row,) = notices(scene)

    assert tell(inst, "email") == {"sent": 1, "failed": 0, "doubtful": 0}

    (sent,) = mail.deliveries()
    assert sent.to == ("team@shop.example",)
    assert sent.message_id == f"<{row.idempotency_key}@shop.example>"
    words = worded(notice_of(inst, row.idempotency_key, approval_id, "opened", 0, "team@shop.example"))
    assert "Refund 19.99 EUR?" in words.text
    assert "DE12-secret" not in words.text + words.html + words.subject
    link = next(word for word in words.text.split() if word.startswith("https://shop.example/agents/link/"))
    assert read_link(inst, link.rpartition("/")[2]).person == "team@shop.example"
    assert notices(scene)[0].status == "sent"


def test_a_prompt_is_text_in_every_part_of_a_mail(scene: Scene, mail: SmtpServer) -> None:
    inst = set_up(scene, email=smtp_channel(mail))
    (approval_id,) = open_questions(scene, TEAM, ["r-1"], prompt=EVIL)
    (row,) = notices(scene)

    words = worded(notice_of(inst, row.idempotency_key, approval_id, "opened", 0, "team@shop.example"))
    tell(inst, "email")

    assert "<script>" not in words.html
    assert "&lt;script&gt;" in words.html
    assert "pay\\u202ehcum" in words.text
    assert "\u202e" not in words.subject + words.text + words.html
    assert "\n" not in words.subject
    assert [d.to for d in mail.deliveries()] == [("team@shop.example",)]


def test_a_host_replaces_templates_one_by_one(scene: Scene, mail: SmtpServer, tmp_path: Path) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "opened.txt").write_text("For {{ to }}: {{ approval.args.order }}")
    inst = set_up(scene, email=smtp_channel(mail, templates=str(tmp_path / "words")))
    (approval_id,) = open_questions(scene, TEAM, ["r-1"])
    scene.conn.execute('UPDATE approvals SET args = \'{"order": "o-1"}\'')
    notice = notice_of(inst, notices(scene)[0].idempotency_key, approval_id, "opened", 0, "team")

    words = worded(notice, str(tmp_path / "words"))

    assert words.text == "For team: o-1"
    assert "needs an answer" in words.html


def test_a_broken_template_sends_nothing_and_is_tried_again(
    scene: Scene, mail: SmtpServer, tmp_path: Path
) -> None:
    (tmp_path / "notice.txt").write_text("{{ nosuchthing }}")
    inst = set_up(scene, email=smtp_channel(mail, templates=str(tmp_path)))
    open_questions(scene, TEAM, ["r-1"])

    assert tell(inst, "email")["failed"] == 1

    (row,) = notices(scene)
    assert (row.status, row.error["type"]) == ("failed", "celegraph.errors.EffectNotDone")
    assert mail.deliveries() == []


def test_a_refused_recipient_is_no_doubt_and_holds_nobody_else_up(scene: Scene, mail: SmtpServer) -> None:
    inst = set_up(scene, email=smtp_channel(mail))
    bad = ApprovalPolicy(
        notify=[Step(to="nobody@shop.example"), Step(to="no address"), Step(to="a@shop.example")]
    )
    open_questions(scene, bad, ["r-1"])

    assert tell(inst, "email") == {"sent": 1, "failed": 2, "doubtful": 0}
    assert [d.to for d in mail.deliveries()] == [("a@shop.example",)]


def test_a_webhook_is_signed_and_the_same_on_every_try(scene: Scene) -> None:
    with receiver(503) as (url, got):
        inst = set_up(scene, hook={"kind": "webhook", "url": url, "secret": [SECRET, SECRET[::-1]]})
        open_questions(scene, HOOKED, ["r-1"])
        eventually(lambda: tell(inst, "hook")["sent"] == 1)
    (row,) = notices(scene)
    (first, body), (second, again) = got

    assert body == again
    assert first["idempotency-key"] == second["idempotency-key"] == row.idempotency_key
    assert row.attempts == 2
    # As a receiver checks it, with either secret while one is being replaced.
    parts = [part.partition("=") for part in second["celegraph-signature"].split(",")]
    at = next(value for name, _, value in parts if name == "t")
    assert abs(time.time() - int(at)) < 300
    for secret in (SECRET, SECRET[::-1]):
        wanted = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        assert any(hmac.compare_digest(value, wanted) for name, _, value in parts if name == "v1")
    told = json.loads(body)
    assert (told["event"], told["approval_id"], told["run_id"]) == ("opened", "ap-r-1", "r-1")
    assert "args" not in told


def test_a_webhooks_redirect_is_not_followed(scene: Scene) -> None:
    with receiver(302) as (url, got):
        inst = set_up(scene, hook={"kind": "webhook", "url": url, "secret": SECRET})
        open_questions(scene, HOOKED, ["r-1"])
        assert tell(inst, "hook")["sent"] == 0
    assert len(got) == 1


def test_a_signature_says_when_it_was_made() -> None:
    assert signature(["k" * 16], b"{}", 1700000000).startswith("t=1700000000,v1=")
    assert signature(["k" * 16], b"{}", 1) != signature(["k" * 16], b"{}", 2)


def test_whoever_was_faster_is_not_reminded(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inst = told_to_files(scene, tmp_path, monkeypatch)
    (approval_id,) = open_questions(scene, ApprovalPolicy(notify=[Step(to="ann")]), ["r-1"])
    decide(approval_id, "approve", by="ben")

    tell(inst, "email")

    assert everything_told(tmp_path / "told") == []
    (row,) = notices(scene)
    assert (row.status, row.value) == ("sent", {"told": False, "because": "approved"})


def told_to_files(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    (tmp_path / "told").mkdir()
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "told"))
    return set_up(scene, email={"kind": "call", "call": "tests.support.told:tell"})


def test_a_function_of_the_hosts_gets_the_question_and_its_link(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inst = told_to_files(scene, tmp_path, monkeypatch)
    (approval_id,) = open_questions(scene, ApprovalPolicy(notify=[Step(to="ann")]), ["r-1"])

    tell(inst, "email")

    (told,) = everything_told(tmp_path / "told")
    assert (told["what"], told["to"], told["approval_id"]) == ("opened", "ann", approval_id)
    assert read_link(inst, told["link"].rpartition("/")[2]).approval_id == approval_id


def test_a_dead_provider_holds_up_neither_the_clock_nor_another_channel(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server accepts connections and never says a word."""
    import socket

    (tmp_path / "told").mkdir()
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "told"))
    with socket.create_server(("127.0.0.1", 0), backlog=50) as silent:
        url = f"smtp://127.0.0.1:{silent.getsockname()[1]}"
        dead = {"kind": "smtp", "url": url, "sender": "a@shop.example", "timeout": "20s"}
        inst = set_up(scene, email=dead, sms={"kind": "call", "call": "tests.support.told:tell"})
        both = ApprovalPolicy(deadline="1h", notify=[Step(to="a@b.example"), Step(to="ann", by="sms")])
        ids = open_questions(scene, both, [f"r-{n}" for n in range(5)])
        began = time.monotonic()
        periodic.escalate(inst)
        eventually(lambda: len(everything_told(tmp_path / "told")) == 5, within=10)
        scene.conn.execute("UPDATE approvals SET deadline_at = ledger_now(), next_action_at = ledger_now()")
        assert periodic.escalate(inst)["expired"] == 5
        took = time.monotonic() - began

    # One try of the dead one alone takes 16 seconds.
    assert took < 12
    rows = scene.conn.execute("SELECT status FROM approvals WHERE approval_id = ANY(%s)", (ids,)).fetchall()
    assert {row["status"] for row in rows} == {"expired"}


def test_a_refusing_server_is_tried_again_with_growing_pauses(scene: Scene) -> None:
    url = f"smtp://127.0.0.1:{free_port()}"
    inst = set_up(scene, email={"kind": "smtp", "url": url, "sender": "a@shop.example"})
    open_questions(scene, TEAM, ["r-1"])
    pauses = []
    for _ in range(3):
        assert tell(inst, "email")["failed"] == 1
        row = scene.conn.execute(
            "SELECT extract(epoch FROM next_try_at - updated_at)::float8 AS s FROM effects"
        ).fetchone()
        assert row is not None
        pauses.append(round(row["s"]))
        scene.conn.execute("UPDATE effects SET next_try_at = ledger_now()")

    assert pauses == [1, 2, 4]


@pytest.mark.parametrize(
    ("channels", "said"),
    [
        ({"email": {"kind": "smpt"}}, "smtp"),
        ({"email": {"kind": "smtp", "url": "mail.example", "sender": "a@b.example"}}, "names no mail server"),
        ({"email": {"kind": "smtp", "url": "smtp://m", "sender": "me"}}, "pattern"),
        ({"hook": {"kind": "webhook", "url": "https://x.example", "secret": "short"}}, "at least 16"),
        ({"hook": {"kind": "webhook", "url": "ftp://x.example", "secret": SECRET}}, "address like"),
        ({"hook": {"kind": "webhook", "url": "https://x.example", "secret": []}}, "at least 1"),
        ({"sms": {"kind": "call", "call": "shop.sms.send"}}, "import path"),
        ({"sms": {"kind": "call", "call": "a:b", "colour": "red"}}, "not permitted"),
        ("{not json", "not JSON"),
    ],
)
def test_a_channel_that_cannot_work_is_refused_at_the_start(channels: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        load_config({"database_url": "postgresql://nobody@nowhere/x", "channels": channels})
    assert SECRET not in str(caught.value)


def test_what_happens_next_is_said_for_every_policy(scene: Scene) -> None:
    said: dict[str, Callable[[], ApprovalPolicy]] = {
        "goes on without it": lambda: ApprovalPolicy(deadline="1h"),
        "the run ends": lambda: ApprovalPolicy(deadline="1h", on_timeout="cancel"),
        "approved by policy": lambda: ApprovalPolicy(deadline="1h", on_timeout="approve"),
        "may only read": lambda: ApprovalPolicy(deadline="1h", on_timeout="read_only"),
        "waits until somebody answers": lambda: ApprovalPolicy(),
        "brought up again": lambda: ApprovalPolicy(
            deadline="1h", escalate=[Step("1m", to="x")], on_timeout="escalate"
        ),
    }
    inst = set_up(scene, email={"kind": "call", "call": "tests.support.told:tell"})
    for n, (words, make) in enumerate(said.items()):
        (approval_id,) = open_questions(scene, make(), [f"r-{n}"])
        from celegraph.ledger.approvals import get_approval

        assert words in consequences(get_approval(scene.conn, approval_id))[-1].then
    assert inst.config.channels


def test_mail_parts_are_the_same_bytes_on_every_try() -> None:
    from celegraph.agent import smtp
    from celegraph.agent.declaration import EffectCall

    call = EffectCall(key="cg-abc", attempt=1, run_id="r", tool="notify:email")
    mails = [
        smtp.compose(call, sender="a@b.example", to="c@d.example", subject="s", text="t", html="<p>t</p>")
        for _ in range(2)
    ]
    for mail in mails:
        del mail["Date"]
    first, second = (message_from_bytes(m.as_bytes(), policy=policy.default).as_bytes() for m in mails)
    assert first == second
    assert mails[0].get_content_type() == "multipart/alternative"


def test_a_webhook_channel_does_not_show_its_secret() -> None:
    channel = WebhookChannel(kind="webhook", url="https://x.example/token", secret=(SECRET,))  # type: ignore[arg-type]
    assert SECRET not in repr(channel)
    assert "token" not in repr(channel)
