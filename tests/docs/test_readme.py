"""The README does what it says: its code runs, its commands and links exist."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from celegraph.cli.demo.play import Played
from celegraph.cli.demo.report import Report
from celegraph.cli.group import main
from celegraph.testing.driver import Driver
from tests.docs.blocks import BLOCKS, PAYMENTS, README, REPOSITORY, write

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
]


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The README's agent, with a payment provider beside it."""
    write(tmp_path, "shop/agents.py")
    (tmp_path / "shop" / "payments.py").write_text(PAYMENTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("shop.agents")
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def test_the_agent_refunds_once_after_a_yes(agents: ModuleType, drive: Driver) -> None:
    run = drive(agents.graph, {"order": "A-1"}, decisions=["approve"])

    assert run.output == {"order": "A-1", "cents": 1999, "receipt": "receipt for A-1"}
    assert len(agents.payments.LOG.read_text().splitlines()) == 1


def test_the_agent_refunds_nothing_after_a_no(agents: ModuleType, drive: Driver) -> None:
    run = drive(agents.graph, {"order": "A-1"}, decisions=["reject"])

    assert run.output["receipt"] == "rejected"
    assert not agents.payments.LOG.exists()


def test_the_django_example_starts_asks_and_pays(tmp_path: Path, empty_database_url: str) -> None:
    subprocess.run([sys.executable, "-m", "django", "startproject", "shop", str(tmp_path)], check=True)
    write(tmp_path, "shop/agents.py", "shop/celery.py", "shop/views.py")
    (tmp_path / "shop" / "payments.py").write_text(PAYMENTS)
    script = Path(__file__).with_name("django_visitor.py").read_text()
    (tmp_path / "visitor.py").write_text(script)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("CELEGRAPH_", "DATABASE_"))}

    done = subprocess.run(
        [sys.executable, "visitor.py", empty_database_url],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )

    assert done.stdout.splitlines()[-1:] == ["finished, refunded 1 time"], done.stdout + done.stderr


@pytest.mark.parametrize("name", ["shop/agents.py", "shop/celery.py", "shop/views.py"])
def test_the_examples_are_short(name: str) -> None:
    lines = [line for line in BLOCKS[name].splitlines() if line.strip()]

    assert len(lines) <= 26


def test_the_last_line_of_the_demo_is_as_the_readme_shows_it() -> None:
    shown = re.search(r"^    (DEMO OK .*)$", README, re.MULTILINE)
    made = Report(Played([], []), [], 0).last_line()

    assert shown is not None
    assert re.sub(r"=\S+", "=", shown[1]) == re.sub(r"=\S+", "=", made)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert link.startswith("https://") or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_named_in_a_page_exists(page: Path) -> None:
    listed = CliRunner().invoke(main, ["--help"]).output
    for name in re.findall(r"`celegraph ([a-z]+)", page.read_text(encoding="utf-8")):
        assert re.search(rf"^  {name}\b", listed, re.MULTILINE), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_named_in_a_page_exists(page: Path) -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    for target in re.findall(r"make ([a-z]+)`", page.read_text(encoding="utf-8")):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
