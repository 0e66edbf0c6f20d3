"""What a web process pays for: it never imports LangGraph."""

from __future__ import annotations

import subprocess
import sys

import celegraph
from tests.support.process import ROOT
from tests.support.scene import Scene

_WEB = """
import sys
from tests.support.app import make_app
import celegraph

@celegraph.effect("declared in a module that views import, too")
def pay(call: celegraph.EffectCall, cents: int) -> str:
    return "receipt"

app = make_app(sys.argv[1], settings={"database_url": sys.argv[2]})
celegraph.start_run.delay("approved", {"cents": 1}, run_id="r-1")
try:
    celegraph.decide("no such approval", "approve", by="anna")
except LookupError:
    pass
celegraph.list_runs(), celegraph.list_approvals(), celegraph.get_run("r-1"), celegraph.trace_run("r-1")
celegraph.cancel_run("r-1")
heavy = [name for name in sys.modules if name.split(".")[0] in ("langgraph", "langchain_core")]
print(heavy)
"""


def test_declaring_effects_installing_starting_and_deciding_never_imports_langgraph(scene: Scene) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WEB, scene.broker_url, scene.database_url],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=scene.env(),
        check=True,
    )

    assert done.stdout.strip() == "[]"
    assert scene.run("r-1").status == "cancelled"


def test_every_public_name_can_be_imported() -> None:
    for name in celegraph.__all__:
        assert getattr(celegraph, name) is not None
