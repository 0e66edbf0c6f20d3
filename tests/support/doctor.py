"""`celegraph doctor --json` as a monitor calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.support.process import ROOT
from tests.support.scene import Scene


def asked_doctor(scene: Scene) -> dict[str, Any]:
    """What it says; its exit status says the same."""
    told = subprocess.run(
        [sys.executable, "-m", "celegraph", "doctor", "--json", "-A", "tests.support.app:app"],
        cwd=ROOT,
        env=scene.env(),
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, Any] = json.loads(told.stdout)
    assert found["ok"] == (told.returncode == 0)
    return found
