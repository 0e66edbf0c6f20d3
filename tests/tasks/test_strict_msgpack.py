"""A checkpoint cannot name code to run: LangGraph is strict, or the worker says that it is not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.process import ROOT
from tests.support.scene import Scene

_WORKER = """
import importlib, logging, sys
logging.basicConfig(level="WARNING")
for first in sys.argv[1].split(","):
    importlib.import_module(first)
from tests.support.app import make_app
from celegraph.agent.graphs import strict_msgpack
from celegraph.tasks.fitness import check_worker
from celegraph.tasks.installation import find
check_worker(find(make_app(sys.argv[2], settings={"database_url": sys.argv[3]})), "prefork")
print(strict_msgpack())
"""


@pytest.mark.parametrize(
    ("first", "given", "strict", "warned"),
    [
        ("celegraph,langgraph.graph", None, True, False),
        ("langgraph.graph,celegraph", None, False, True),
        ("langgraph.graph,celegraph", "true", True, False),
        ("celegraph,langgraph.graph", "false", False, False),
    ],
)
def test_a_worker_is_strict_about_checkpoints_or_says_why_not(
    scene: Scene, first: str, given: str | None, strict: bool, warned: bool
) -> None:
    env = {name: value for name, value in scene.env().items() if name != "LANGGRAPH_STRICT_MSGPACK"}
    done = subprocess.run(
        [sys.executable, "-c", _WORKER, first, scene.broker_url, scene.database_url],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=env | ({"LANGGRAPH_STRICT_MSGPACK": given} if given else {}),
        check=True,
    )

    assert done.stdout.strip() == str(strict)
    assert ("LangGraph was imported before celegraph" in done.stderr) == warned
