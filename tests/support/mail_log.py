"""The local mail server's own log as a channel's look-up."""

from __future__ import annotations

import os
from pathlib import Path

from celegraph.agent.declaration import EffectCall, Found
from celegraph.agent.smtp import look_up_in_log
from celegraph.tasks.notice import Notice

LOG = "CELEGRAPH_TEST_MAIL_LOG"


def was_accepted(call: EffectCall, notice: Notice) -> Found:
    """Whether this very message is in the log."""
    return look_up_in_log(Path(os.environ[LOG]), "shop.example")(call)
