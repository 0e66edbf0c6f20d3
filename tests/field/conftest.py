"""Field cases may play scenes with real workers, or drive a run beside a fake provider's process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.conftest import scene as scene
from tests.support.process import ROOT
from tests.support.provider import FakeProvider


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[FakeProvider]:
    """A provider of this test alone; its log is the oracle."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with FakeProvider(tmp_path, env) as started:
        yield started
