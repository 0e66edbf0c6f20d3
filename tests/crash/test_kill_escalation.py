"""The process that escalates, killed before and after each of its statements: one step, one mail.

The oracle is the mail server's own log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from celegraph import ApprovalPolicy, Step
from celegraph.dev.mailbox import SmtpServer, smtp_server
from tests.support.asking import open_questions
from tests.support.mail_log import LOG
from tests.support.process import kill_and_await
from tests.support.scene import Scene
from tests.support.waiting import eventually
from tests.support.wire import Side, Wire, ours
from tests.support.workers import Worker


@dataclass
class Stage:
    """The worker of the clock, whose every statement passes the wire, and the mail server."""

    scene: Scene
    wire: Wire
    mail: SmtpServer
    control: Worker

    def pids(self) -> list[int]:
        """The pool children, and the main process, which does their duty when nobody else has lately."""
        return [self.control.pid, *self.control.children()]

    def kill(self, pid: int) -> None:
        """SIGKILL; the pool replaces its children, nobody the main process."""
        if pid == self.control.pid:
            self.control.kill()
            self.control.start()
        else:
            kill_and_await(pid)


@pytest.fixture(scope="module")
def stage(
    module_database_url: str, module_broker_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """Shared by the file: a killed pool child is replaced."""
    directory = tmp_path_factory.mktemp("escalation")
    with (
        smtp_server(directory / "mail") as mail,
        Wire(module_database_url) as wire,
        Scene(module_database_url, module_broker_url, directory) as scene,
    ):
        email = {
            "kind": "smtp",
            "url": mail.url,
            "sender": "agents@shop.example",
            "timeout": "2s",
            "lookup": "tests.support.mail_log:was_accepted",
        }
        scene.configure(channels=json.dumps({"email": email}))
        env = scene.env(database_url=wire.url) | {LOG: str(mail.log)}
        yield Stage(scene, wire, mail, scene.control(env=env))


POLICY = ApprovalPolicy(deadline="1h", escalate=[Step("1ms", to="duty@shop.example")])
STATEMENTS = [
    ("approvals", "move_due"),
    ("outbox", "claim_next"),
    ("effects", "record_sent"),
]


def told_once(stage: Stage, name: str) -> None:
    """One step taken, one notice settled, one mail in the server's log."""

    def settled() -> bool:
        notices = [e for e in stage.scene.effects(name) if e.tool == "notify:email"]
        return [e.status for e in notices] == ["sent"]

    eventually(settled, within=60)
    assert [d.run_id for d in stage.mail.deliveries()].count(name) == 1
    assert stage.scene.kinds(name).count("escalated") == 1


@pytest.mark.timeout(180)
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize(("file", "statement"), STATEMENTS)
def test_a_clock_killed_beside_a_statement_escalates_once(
    stage: Stage, file: str, statement: str, side: Side
) -> None:
    name = f"{statement}-{side}"

    with stage.wire.hold(ours(file, statement), side) as hold:
        open_questions(stage.scene, POLICY, [name])
        stage.kill(hold.await_arrival(stage.pids, within=60))

    told_once(stage, name)


@pytest.mark.timeout(180)
def test_a_process_killed_after_the_server_has_accepted_the_mail_sends_no_second_one(stage: Stage) -> None:
    name = "accepted"
    stage.mail.hold(name)
    open_questions(stage.scene, POLICY, [name])
    eventually(lambda: any(h["run_id"] == name for h in stage.mail.held()), within=60)

    stage.kill(stage.control.pid)
    stage.mail.let_go()

    told_once(stage, name)
    (notice,) = [e for e in stage.scene.effects(name) if e.tool == "notify:email"]
    assert notice.attempts == 1  # the log was asked, the server was not
