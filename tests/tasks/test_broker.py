"""What is said about a broker before a worker takes runs from it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from celegraph.dev.valkey import Valkey
from celegraph.errors import BrokerUnreachable, BrokerUnsupported
from celegraph.tasks.broker import check_broker
from tests.support.old_redis import claiming_version


@pytest.fixture
def settings(valkey_server: Valkey) -> Iterator[redis.Redis]:
    """The shared broker, whose settings are put back."""
    with redis.Redis.from_url(valkey_server.url, decode_responses=True) as client:
        names = ("appendonly", "save", "maxmemory-policy")
        before = {name: client.config_get(name)[name] for name in names}
        yield client
        for name, value in before.items():
            client.config_set(name, value)


def test_a_good_broker_is_described_and_nothing_is_wrong(broker_url: str) -> None:
    facts = check_broker(broker_url)

    assert (facts.kind, facts.persistence) == ("redis", "aof")
    assert facts.server in ("redis", "valkey")
    assert facts.maxmemory_policy == "noeviction"
    assert facts.warnings == ()


def test_facts_and_errors_hide_the_password(broker_url: str, valkey_server: Valkey) -> None:
    password = broker_url.split(":")[2].split("@")[0]

    assert password not in repr(check_broker(broker_url))
    with pytest.raises(BrokerUnreachable) as raised:
        check_broker(f"redis://:{password}@127.0.0.1:1/0")
    assert password not in str(raised.value)


@pytest.mark.parametrize(("save", "persistence"), [("", "none"), ("60 1", "rdb")])
def test_persistence_is_told(broker_url: str, settings: redis.Redis, save: str, persistence: str) -> None:
    settings.config_set("appendonly", "no")
    settings.config_set("save", save)

    facts = check_broker(broker_url)

    assert facts.persistence == persistence
    assert bool(facts.warnings) == (persistence == "none")


def test_a_broker_that_evicts_is_warned_of(broker_url: str, settings: redis.Redis) -> None:
    settings.config_set("maxmemory-policy", "allkeys-lru")

    (warning,) = check_broker(broker_url).warnings

    assert "set maxmemory-policy noeviction" in warning


def test_a_hosted_broker_that_hides_its_settings_is_accepted(broker_url: str, settings: redis.Redis) -> None:
    settings.config_set("appendonly", "no")
    settings.acl_setuser(
        "hosted",
        enabled=True,
        passwords=["+pw"],
        keys="*",
        channels="*",
        categories=["+@all"],
        commands=["-config"],
    )

    facts = check_broker(broker_url.replace(broker_url.split("@")[0], "redis://hosted:pw"))

    assert facts.persistence == "unknown"
    settings.acl_deluser("hosted")


@pytest.mark.parametrize("version", ["6.0.9", "5.0.7", "2.8.2"])
def test_an_old_redis_is_refused_with_the_remedy(broker_url: str, version: str) -> None:
    real = str(check_broker(broker_url).version)

    with (
        claiming_version(broker_url, real, version) as old,
        pytest.raises(BrokerUnsupported, match=f"is Redis {version}.*use Redis >= 6.2"),
    ):
        check_broker(old)


@pytest.mark.parametrize("version", ["6.2.0", "7.0.1", "9.1.2"])
def test_a_newer_redis_is_accepted(broker_url: str, version: str) -> None:
    real = str(check_broker(broker_url).version)

    with claiming_version(broker_url, real, version) as new:
        assert check_broker(new).version == version


def test_of_another_broker_only_the_kind_is_told() -> None:
    facts = check_broker("memory://")

    assert (facts.kind, facts.version, facts.warnings) == ("memory", None, ())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://127.0.0.1:1/0", r"redis://127\.0\.0\.1:1/0"),
        ("amqp://user:pw@127.0.0.1:1//", r"amqp://user:\*\*@127\.0\.0\.1:1//"),
    ],
)
def test_a_broker_that_is_down_is_named(url: str, shown: str) -> None:
    with pytest.raises(BrokerUnreachable, match=f"{shown} cannot be used: .*refused"):
        check_broker(url)


def test_a_wrong_password_is_told_as_such(broker_url: str) -> None:
    with pytest.raises(BrokerUnreachable, match="invalid username-password"):
        check_broker(broker_url.replace("@", "wrong@"))


@pytest.mark.parametrize("url", ["bogus://host", "redis://127.0.0.1:port/0", "sentinel://host"])
def test_a_url_that_no_transport_takes_is_refused(url: str) -> None:
    with pytest.raises(BrokerUnsupported, match=r"broker .*://"):
        check_broker(url)
