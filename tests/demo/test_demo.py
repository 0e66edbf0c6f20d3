"""The demo as a newcomer sees it: real servers, real kills, the last line, and nothing left behind."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

import celegraph
from celegraph.cli.example import ExampleMissing, find_example, require
from tests.demo.staging import staged
from tests.support.waiting import eventually

DEMO = "demo"
READY = "control worker and beat are up"
LAST_LINE = re.compile(
    r"DEMO OK runs=4 kills=3 emails=4 duplicates=0 lost=0 asked=0"
    r" recovery_p50_s=\d+\.\d\d recovery_max_s=\d+\.\d\d"
)


@pytest.mark.timeout(240)
def test_the_demo_kills_three_times_and_ends_with_every_mail_sent_once() -> None:
    with staged(DEMO, "--runs", "4") as demo:
        demo.say_until(READY)

        said = demo.say_until("DEMO ")
        status = demo.process.wait(30)

        assert LAST_LINE.fullmatch(said[-1]), "\n".join(said)
        assert status == 0
        assert demo.process.stdout is not None
        assert demo.process.stdout.read() == ""  # it was the very last line
        killed = [line for line in said if "SIGKILL" in line]
        assert [word in line for word, line in zip(("child", "whole", "250"), killed, strict=True)] == [
            True
        ] * 3
        assert any("found by Message-ID" in line for line in said)
        assert len(demo.directories) >= 6
        assert demo.leftovers() == []


@pytest.mark.timeout(120)
def test_control_c_stops_the_demo_and_leaves_nothing_behind() -> None:
    with staged(DEMO, "--runs", "4") as demo:
        demo.say_until(READY)

        demo.interrupt()

        assert demo.process.wait(60) != 0
        assert demo.directories
        assert demo.leftovers() == []


@pytest.mark.timeout(120)
def test_a_killed_demo_takes_everything_it_started_with_it() -> None:
    with staged(DEMO, "--runs", "4") as demo:
        demo.say_until(READY)

        demo.process.send_signal(signal.SIGKILL)

        eventually(lambda: not demo.leftovers(), within=40)


def test_an_installed_package_without_the_example_says_where_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(celegraph, "__file__", str(tmp_path / "site-packages" / "celegraph" / "__init__.py"))
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ExampleMissing, match="clone the repository and run this there"):
        find_example()


def test_a_missing_package_is_named_before_anything_is_started() -> None:
    with pytest.raises(ExampleMissing, match=r"not_there is not installed: pip install 'celegraph\[local\]'"):
        require("aiosmtpd", "not_there")
