"""F111: two schedulers, by mistake or for availability; nobody gets a mail twice."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from celegraph import ApprovalPolicy, Step
from celegraph.dev.mailbox import smtp_server
from tests.support.asking import open_questions
from tests.support.scene import Scene
from tests.support.waiting import eventually

OVERDUE = 20


def test_f111_two_beats_and_twenty_overdue_approvals_send_twenty_mails(
    database_url: str, broker_url: str, tmp_path: Path
) -> None:
    with smtp_server(tmp_path / "mail") as mail, Scene(database_url, broker_url, tmp_path) as scene:
        email = {"kind": "smtp", "url": mail.url, "sender": "agents@shop.example"}
        scene.configure(channels=json.dumps({"email": email | {"people": {"duty": "duty@shop.example"}}}))
        policy = ApprovalPolicy(deadline="1h", escalate=[Step("1ms", to="duty")])
        open_questions(scene, policy, [f"due-{n}" for n in range(OVERDUE)])
        for n in (1, 2):
            scene.worker(f"control{n}", queues=[scene.config.control_queue], concurrency=2)
            scene.beat(f"beat{n}")

        eventually(lambda: len(mail.deliveries()) >= OVERDUE, within=60)
        # Both clocks go on; what they find is that nothing is left to say.
        last = _ticked(scene)
        eventually(lambda: _ticked(scene) > last)
        last = _ticked(scene)
        eventually(lambda: _ticked(scene) > last)

        sent = mail.deliveries()
        assert len({d.message_id for d in sent}) == len(sent) == OVERDUE
        assert {d.to for d in sent} == {("duty@shop.example",)}
        settled = scene.conn.execute(
            "SELECT count(*) AS n FROM effects"
            " WHERE tool = 'notify:email' AND status = 'sent' AND attempts = 1"
        ).fetchone()
        assert settled == {"n": OVERDUE}


def _ticked(scene: Scene) -> datetime:
    row = scene.conn.execute("SELECT at FROM ticks WHERE name = 'escalate'").fetchone()
    assert row is not None
    at: datetime = row["at"]
    return at
