"""A channel of the tests: what it was told lies in files, one for each try."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from celegraph.agent.declaration import EffectCall, Found, Happened, NotHappened
from celegraph.tasks.notice import Notice

DIRECTORY = "CELEGRAPH_TEST_TOLD"


def tell(call: EffectCall, notice: Notice) -> None:
    """Write down what was told."""
    told = {
        "key": call.key,
        "what": notice.what,
        "n": notice.n,
        "to": notice.to,
        "approval_id": notice.approval.approval_id,
        "link": notice.link,
    }
    path = _directory() / f"{call.key}.{uuid.uuid4().hex}"
    # Renamed into place: who looks never reads half a line.
    unfinished = _directory().parent / path.name
    unfinished.write_text(json.dumps(told))
    unfinished.rename(path)


def was_told(call: EffectCall, notice: Notice) -> Found:
    """A look-up in the same files."""
    return Happened() if list(_directory().glob(f"{call.key}.*")) else NotHappened()


def everything_told(directory: Path) -> list[dict[str, Any]]:
    """Every try, in no order."""
    return [json.loads(path.read_text()) for path in directory.iterdir()]


def _directory() -> Path:
    return Path(os.environ[DIRECTORY])
