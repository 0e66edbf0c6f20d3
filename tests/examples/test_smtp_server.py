"""The local SMTP server's log is the truth about deliveries, whoever dies: sender or server."""

from __future__ import annotations

import hashlib
import os
import signal
import smtplib
import subprocess
import sys
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest

from celegraph.dev.errors import ServerFailed
from celegraph.dev.mailbox import SmtpServer, smtp_server, start_smtp
from celegraph.dev.smtp import RUN_HEADER
from tests.support.waiting import eventually


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SmtpServer]:
    with smtp_server(tmp_path, refuse=["nobody@shop.example"]) as running:
        yield running


def message(message_id: str, *, to: str = "ana@shop.example", run_id: str = "") -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "support@celegraph.example", to, "Grüße"
    mail["Message-ID"] = message_id
    if run_id:
        mail[RUN_HEADER] = run_id
    mail.set_content("Hello.\n")
    return mail


def send(server: SmtpServer, mail: EmailMessage) -> None:
    with smtplib.SMTP("127.0.0.1", server.port, timeout=10) as client:
        client.send_message(mail)


def start_sender(server: SmtpServer, message_id: str, run_id: str) -> subprocess.Popen[bytes]:
    code = (
        "import smtplib, sys; from tests.examples.test_smtp_server import message\n"
        "client = smtplib.SMTP('127.0.0.1', int(sys.argv[1]), timeout=60)\n"
        "client.send_message(message(sys.argv[2], run_id=sys.argv[3])); print('accepted')\n"
    )
    command = [sys.executable, "-c", code, str(server.port), message_id, run_id]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def test_each_accepted_message_is_one_line_with_its_facts(server: SmtpServer) -> None:
    send(server, message("<one@celegraph.example>", run_id="run-1"))
    send(server, message("<two@celegraph.example>"))

    first, second = server.deliveries()
    assert (first.message_id, first.to) == ("<one@celegraph.example>", ("ana@shop.example",))
    assert (first.run_id, first.subject) == ("run-1", "Grüße")
    assert first.sha256 == hashlib.sha256(b"Hello.\r\n").hexdigest()
    assert (second.message_id, second.run_id) == ("<two@celegraph.example>", "")


def test_the_same_message_sent_twice_counts_twice(server: SmtpServer) -> None:
    for _ in range(2):
        send(server, message("<same@celegraph.example>"))

    assert [d.message_id for d in server.deliveries()] == ["<same@celegraph.example>"] * 2


def test_a_refused_recipient_is_answered_550_and_leaves_no_line(server: SmtpServer) -> None:
    with pytest.raises(smtplib.SMTPRecipientsRefused) as refused:
        send(server, message("<no@celegraph.example>", to="Nobody@shop.example"))

    assert [code for code, _ in refused.value.recipients.values()] == [550]
    assert server.deliveries() == []


def test_a_sender_gone_before_the_end_of_its_message_delivers_nothing(server: SmtpServer) -> None:
    client = smtplib.SMTP("127.0.0.1", server.port, timeout=10)
    client.ehlo()
    client.mail("support@celegraph.example")
    client.rcpt("ana@shop.example")
    client.putcmd("data")
    client.send("Message-ID: <half@celegraph.example>\r\n\r\nhalf a mess")
    client.close()

    # A whole conversation afterwards: by then the server has seen the other one's end.
    send(server, message("<whole@celegraph.example>"))
    assert [d.message_id for d in server.deliveries()] == ["<whole@celegraph.example>"]


@pytest.mark.parametrize("pattern", ["<held-*", "run-7"])
def test_a_sender_killed_while_held_leaves_its_message_delivered_once(
    server: SmtpServer, pattern: str
) -> None:
    server.hold(pattern)
    sender = start_sender(server, "<held-1@celegraph.example>", "run-7")
    eventually(server.held)

    sender.send_signal(signal.SIGKILL)
    answer, _ = sender.communicate()

    assert answer == b""
    assert server.held() == [{"message_id": "<held-1@celegraph.example>", "run_id": "run-7"}]
    assert [d.run_id for d in server.deliveries()] == ["run-7"]


def test_a_held_sender_reads_250_once_it_is_let_go(server: SmtpServer) -> None:
    server.hold("run-8")
    sender = start_sender(server, "<held-2@celegraph.example>", "run-8")
    eventually(server.held)
    assert sender.poll() is None

    server.let_go()
    answer, _ = sender.communicate(timeout=20)

    assert answer.strip() == b"accepted"
    assert len(server.deliveries()) == 1


def test_others_are_served_while_one_is_held(server: SmtpServer) -> None:
    server.hold("run-9")
    sender = start_sender(server, "<held-3@celegraph.example>", "run-9")
    eventually(server.held)

    send(server, message("<free@celegraph.example>", run_id="run-10"))

    server.let_go()
    sender.communicate(timeout=20)
    assert len(server.held()) == 1
    assert len(server.deliveries()) == 2


def test_the_server_ends_when_its_parent_dies(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from celegraph.dev.mailbox import start_smtp\n"
        "print(start_smtp(Path(sys.argv[1])).process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    parent = subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    pid = int(parent.stdout)

    eventually(lambda: not _alive(pid))


def test_the_server_ends_with_its_parent_even_if_a_fork_keeps_the_pipe(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from celegraph.dev.mailbox import start_smtp\n"
        "server = start_smtp(Path(sys.argv[1]))\n"
        "if not os.fork(): os.close(1); os.read(0, 1); os._exit(0)\n"
        "print(server.process.pid, flush=True); os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())

        # The fork ends only when this block closes its stdin.
        eventually(lambda: not _alive(pid))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    # Dead and not yet reaped by whoever adopted it is dead enough.
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def test_sigterm_ends_the_server_even_while_a_sender_is_held(tmp_path: Path) -> None:
    server = start_smtp(tmp_path)
    server.hold("*")
    sender = start_sender(server, "<held-4@celegraph.example>", "")
    eventually(server.held)

    server.stop()

    sender.kill()
    sender.communicate()
    assert server.process.returncode == 0


def test_a_server_started_again_after_kill_9_continues_its_log(tmp_path: Path) -> None:
    first = start_smtp(tmp_path)
    send(first, message("<before@celegraph.example>"))
    first.process.kill()
    first.stop()
    with open(first.log, "a") as log:
        log.write('{"message_id": "<torn@')

    with smtp_server(tmp_path) as second:
        send(second, message("<after@celegraph.example>"))

        ids = [d.message_id for d in second.deliveries()]
    assert ids == ["<before@celegraph.example>", "<after@celegraph.example>"]


def test_a_server_that_cannot_start_says_why(tmp_path: Path, server: SmtpServer) -> None:
    with pytest.raises(ServerFailed, match="address already in use"):
        start_smtp(tmp_path / "second", port=server.port)
