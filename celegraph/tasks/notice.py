"""A notice: what one person is to be told about one question, once.

It is an intent of the outbox, so it has a key, is claimed before it is told, and is answered for when
nobody saw the end of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from celegraph.ledger.approvals import Approval

What = Literal["opened", "reminder", "escalation", "deadline", "again"]


@dataclass(frozen=True)
class Notice:
    """`what` has happened for the `n`-th time; `to` is the policy's name of whom to tell.

    `link` opens the question as this person (None without `site_url` and `link_secret`); it is a secret of
    theirs, to be told to nobody else and never logged.
    """

    key: str
    what: What
    n: int
    to: str
    approval: Approval
    link: str | None
