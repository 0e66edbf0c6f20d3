"""Field cases may play scenes with real workers."""

from __future__ import annotations

from tests.crash.conftest import scene as scene
