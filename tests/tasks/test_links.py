"""Signed links: bound to one question and one person, expiring, and never more than a way to look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from itsdangerous import URLSafeSerializer

from celegraph.config import Config, load_config
from celegraph.errors import ConfigError, LinkExpired, LinkForged
from celegraph.tasks.links import SignedLink, link_url, read_link, sign_link

OLD, NEW = "an-old-secret-of-32-characters-xx", "a-new-secret-of-32-characters-xxx"
SITE = "https://shop.example/agents"


def config(*secrets: str, site_url: str = SITE) -> Config:
    return load_config(
        {"database_url": "postgresql://nobody@nowhere/x", "link_secret": list(secrets), "site_url": site_url}
    )


def test_a_link_names_its_question_and_its_person_and_nothing_else() -> None:
    token = sign_link(config(NEW), "ap-1", "duty-manager")

    assert read_link(config(NEW), token) == SignedLink("ap-1", "duty-manager")


def test_no_character_of_a_link_can_be_changed() -> None:
    token = sign_link(config(NEW), "ap-1", "duty-manager", expires_at=datetime(2100, 1, 1, tzinfo=UTC))

    for at in range(len(token) - 1):  # the last character carries two bits that base64 ignores
        other = "A" if token[at] != "A" else "B"
        with pytest.raises(LinkForged):
            read_link(config(NEW), token[:at] + other + token[at + 1 :])


@pytest.mark.parametrize("token", ["", ".", "a.b", "x" * 1_000_000, "\u2026", "WzEsMl0.abc"])
def test_what_nobody_signed_opens_nothing(token: str) -> None:
    with pytest.raises(LinkForged, match="not valid"):
        read_link(config(NEW), token)


def test_a_token_signed_for_another_purpose_with_the_same_secret_opens_nothing() -> None:
    foreign = URLSafeSerializer(NEW, salt="sessions").dumps(["ap-1", "duty-manager", 4102444800])

    with pytest.raises(LinkForged):
        read_link(config(NEW), foreign)


def test_a_link_expires_with_its_question_and_says_which_one_it_was() -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    token = sign_link(config(NEW), "ap-1", "duty-manager", expires_at=past)

    with pytest.raises(LinkExpired, match="'ap-1' expired at") as caught:
        read_link(config(NEW), token)

    assert caught.value.approval_id == "ap-1"


def test_a_secret_can_be_replaced_while_links_of_the_old_one_are_out() -> None:
    before = sign_link(config(OLD), "ap-1", "ann")
    after = sign_link(config(NEW, OLD), "ap-1", "ann")

    assert read_link(config(NEW, OLD), before).person == "ann"
    assert read_link(config(NEW), after).person == "ann"
    with pytest.raises(LinkForged):
        read_link(config(NEW), before)


def test_a_link_that_is_made_again_is_the_same_link() -> None:
    until = datetime(2100, 1, 1, tzinfo=UTC)

    assert sign_link(config(NEW), "ap-1", "ann", expires_at=until) == sign_link(
        config(NEW), "ap-1", "ann", expires_at=until
    )


def test_the_address_of_a_link_is_the_sites_own() -> None:
    assert link_url(config(NEW, site_url=f"{SITE}/"), "abc.def") == f"{SITE}/link/abc.def"


def test_without_a_secret_or_an_address_the_message_says_what_to_set() -> None:
    with pytest.raises(ConfigError, match="'link_secret' is not set"):
        sign_link(config(), "ap-1", "ann")
    with pytest.raises(ConfigError, match="'site_url' is not set"):
        link_url(config(NEW, site_url=""), "abc")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"link_secret": "short-secret"}, "at least 16 characters"),
        ({"link_secret": [NEW, 7]}, "a secret or a list of secrets"),
        ({"site_url": "shop.example"}, "an address like"),
        ({"site_url": "https://shop.example/?a=b"}, "an address like"),
    ],
)
def test_a_wrong_setting_is_refused_without_being_shown(given: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        load_config({"database_url": "postgresql://nobody@nowhere/x", **given})

    assert "short-secret" not in f"{caught.value} {caught.value.__cause__}"


def test_a_secret_does_not_show_in_the_configuration() -> None:
    assert NEW not in f"{config(NEW)!r} {config(NEW)}"
