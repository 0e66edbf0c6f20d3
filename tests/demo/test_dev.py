"""`celegraph dev`: left running to play with, closed to strangers, gone after Ctrl-C."""

from __future__ import annotations

import base64
import re
import shutil
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.demo.staging import REPOSITORY, Staged, staged
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Staged, str]]:
    """The command while it runs, and what it has printed."""
    with staged("dev", cwd=tmp_path_factory.mktemp("dev")) as running:
        said = "\n".join(running.say_until("Ctrl-C stops everything"))
        yield running, said
    for home in running.homes:
        shutil.rmtree(home)


def status_of(url: str, password: str = "") -> int:
    request = urllib.request.Request(url)
    if password:
        given = base64.b64encode(f"celegraph:{password}".encode()).decode()
        request.add_header("Authorization", f"Basic {given}")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


@pytest.mark.parametrize("page", ["/", "/tasks", "/api/workers"])
def test_flower_is_closed_to_who_has_no_password(page: str, dev: tuple[Staged, str]) -> None:
    found = re.search(r"(http://127\.0\.0\.1:\d+)  user celegraph, password (\S+)", dev[1])

    assert found is not None
    assert status_of(found[1] + page) == 401
    assert status_of(found[1] + page, found[2]) == 200


def test_no_password_is_on_a_command_line(dev: tuple[Staged, str]) -> None:
    secrets = re.findall(r"://\w*:([^@\s]+)@|password (\S+)", dev[1])

    assert len(secrets) == 3  # PostgreSQL, the broker, Flower
    for command in dev[0].processes():
        assert not any(secret in command for pair in secrets for secret in pair if secret)


def test_the_three_lines_start_a_run_and_answer_it(dev: tuple[Staged, str]) -> None:
    variables = re.search(r"\. (\S+/env)", dev[1])
    assert variables is not None
    assert stat.S_IMODE(Path(variables[1]).stat().st_mode) == 0o600

    def shell(command: str) -> str:
        line = f"set -a; . {variables[1]}; PYTHONPATH=.; {command}"
        return subprocess.run(
            ["sh", "-c", line], cwd=REPOSITORY, check=True, capture_output=True, text=True
        ).stdout

    python = f"{sys.executable} -c 'from celegraph.cli import main; main()'"
    run_id = shell(f"{sys.executable} -m examples.support T-05").strip()
    asked = eventually(lambda: re.search(r"^(ap-\S+)", shell(f"{python} approvals"), re.MULTILINE), 30)
    assert asked is not None
    shell(f"{python} decide {asked[1]} approve --by me")

    eventually(lambda: re.search(rf"{run_id}.*finished", shell(f"{python} runs")), 30)


def test_control_c_stops_everything_and_keeps_the_data(dev: tuple[Staged, str]) -> None:
    running, _ = dev

    running.interrupt()

    assert running.process.wait(60) == 0
    assert running.processes() == []
    assert all(home.exists() for home in running.homes)
