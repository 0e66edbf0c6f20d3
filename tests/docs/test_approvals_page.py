"""The page on approvals is true: its policy can be made, and its receiver accepts what we sign."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

from celegraph import ApprovalPolicy
from celegraph.config import load_config
from celegraph.tasks.channels.webhook import signature
from tests.docs.blocks import REPOSITORY

PAGE = (REPOSITORY / "docs" / "approvals.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SECRET = "a-secret-of-more-than-16-characters"


def run(text: str, **names: Any) -> dict[str, Any]:
    """The names that the block defines."""
    exec(text, names)
    return names


def test_the_policy_of_the_page_can_be_made() -> None:
    policy = run(BLOCKS[0])["POLICY"]

    assert isinstance(policy, ApprovalPolicy)
    assert policy.channels == {"chat", "email"}


def test_the_channels_of_the_page_can_be_configured() -> None:
    app = SimpleNamespace(conf=SimpleNamespace())
    secrets = SimpleNamespace(environ={"LINK_SECRET": SECRET, "HOOK_SECRET": SECRET})

    run(BLOCKS[1], app=app, os=secrets)
    config = load_config(app.conf.celegraph | {"database_url": "postgresql://nobody@nowhere/x"})

    assert sorted(config.channels) == ["chat", "email", "sms"]


def test_the_receiver_of_the_page_tells_ours_from_others() -> None:
    is_genuine = run(BLOCKS[2])["is_genuine"]
    body = b'{"event": "opened"}'
    header = signature(["another-secret-of-16", SECRET], body, 1_700_000_000)

    assert is_genuine(SECRET, header, body, now=1_700_000_100)
    assert not is_genuine(SECRET, header, body + b" ", now=1_700_000_100)
    assert not is_genuine("x" * 20, header, body, now=1_700_000_100)
    assert not is_genuine(SECRET, header, body, now=1_700_000_400)
    assert not is_genuine(SECRET, header.replace("t=1700000000", "t=1700000050"), body, now=1_700_000_100)
    assert not is_genuine(SECRET, "nonsense", body)


def test_every_field_and_meaning_of_a_policy_is_on_the_page() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) >= {
        *ApprovalPolicy.model_fields,
        "reject",
        "cancel",
        "read_only",
        "approve",
        "escalate",
    }
