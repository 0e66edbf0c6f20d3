"""Who starts the servers: this user and, if that is root, an ordinary one too."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator

import pytest

from celegraph.dev.account import Account
from tests.support.clone import Clone, clone_of

OWNERS = ["root", "nobody"] if os.geteuid() == 0 else [pwd.getpwuid(os.geteuid()).pw_name]


@pytest.fixture(scope="module", params=OWNERS)
def clone(request: pytest.FixtureRequest) -> Iterator[Clone]:
    """A clone under the 0700 home of its owner."""
    entry = pwd.getpwnam(request.param)
    mine = entry.pw_uid == os.geteuid()
    owner = None if mine else Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    with clone_of(owner) as made:
        yield made


@pytest.fixture
def no_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names no servers."""
    for name in ("CELEGRAPH_DATABASE_URL", "DATABASE_URL", "CELERY_BROKER_URL"):
        monkeypatch.delenv(name, raising=False)
