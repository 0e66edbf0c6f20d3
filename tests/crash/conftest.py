"""Scenes with real workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.scene import Scene


@pytest.fixture
def scene(database_url: str, broker_url: str, tmp_path: Path) -> Iterator[Scene]:
    """A scene of this test alone."""
    with Scene(database_url, broker_url, tmp_path) as made:
        yield made
