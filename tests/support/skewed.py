"""A host whose clock is wrong: the wall clock of one process, not PostgreSQL's and not the monotonic one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def clock_off_by(seconds: int) -> dict[str, str]:
    """Environment of such a process; the test is skipped without libfaketime, and fails in CI."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        if os.environ.get("CI"):
            pytest.fail("no libfaketime: apt-get install faketime, as .ci/run does")
        pytest.skip("no libfaketime on this machine: apt-get install faketime")
    return {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME": f"{seconds:+d}s",
        # Waiting must go on as ever; only the time of day is wrong.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
