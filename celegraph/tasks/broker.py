"""What a worker must know about its broker before it takes runs from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import amqp
import redis
from kombu import Connection, Queue
from kombu.exceptions import OperationalError

from celegraph.errors import BrokerUnreachable, BrokerUnsupported

OLDEST_REDIS = (6, 2)  # kombu 5.7 finds lost messages by ZRANGE ... BYSCORE REV
_ANSWER_WITHIN = 5.0
_REDIS_LIMITS = {"socket_connect_timeout": _ANSWER_WITHIN, "socket_timeout": _ANSWER_WITHIN, "max_retries": 1}
_AMQP_LIMITS = {
    "read_timeout": _ANSWER_WITHIN,
    "write_timeout": _ANSWER_WITHIN,
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
}


@dataclass(frozen=True)
class BrokerFacts:
    """`kind` is kombu's name of the transport; of transports that nobody has tried nothing else is known.

    `version` is the Redis version the server claims to be compatible with, or RabbitMQ's own.
    """

    kind: str
    url: str
    server: str | None = None
    version: str | None = None
    persistence: str | None = None
    maxmemory_policy: str | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What costs time after a crash, in words for a person.  Nothing here loses a run."""
        found = []
        if self.persistence == "none":
            found.append(
                "the broker keeps nothing on disk: after its restart the sweep rings every run"
                " again; set appendonly yes"
            )
        if self.maxmemory_policy not in (None, "noeviction"):
            found.append(
                f"the broker may throw messages away (maxmemory-policy {self.maxmemory_policy});"
                " set maxmemory-policy noeviction"
            )
        return tuple(found)


def check_broker(url: str, transport_options: Mapping[str, object] | None = None) -> BrokerFacts:
    """The broker's facts, read over the connection a worker would use.

    `BrokerUnsupported`: it cannot carry runs.  `BrokerUnreachable`: it does not answer.
    """
    try:
        connection = Connection(url, transport_options=dict(transport_options or {}))
        return check_connection(connection)
    except (KeyError, ValueError, ImportError) as error:
        raise BrokerUnsupported(f"broker {_shown(url)}: {error.args[0]}") from error


def check_connection(connection: Connection) -> BrokerFacts:
    """As `check_broker`, for a connection as the app makes it: with TLS, credentials, alternatives."""
    kind = connection.transport.driver_type
    url = _shown(connection.as_uri(include_password=True))
    if kind == "redis":
        with _bounded(connection, _REDIS_LIMITS) as bounded:
            return _check_redis(bounded, url)
    if kind == "amqp":
        with _bounded(connection, _AMQP_LIMITS) as bounded:
            return _check_amqp(bounded, url)
    return BrokerFacts(kind, url)


@contextmanager
def _bounded(connection: Connection, limits: Mapping[str, object]) -> Iterator[Connection]:
    options = {**(connection.transport_options or {}), **limits}
    bounded = connection.clone(transport_options=options, connect_timeout=_ANSWER_WITHIN, heartbeat=0)
    try:
        yield bounded
    finally:
        hang_up(bounded)


def hang_up(connection: Connection) -> None:
    """Close, without waiting for what RabbitMQ has to say to it: its silence may be the reason."""
    if connection.transport.driver_type == "amqp":
        connection.collect()
    else:
        connection.release()


def _check_amqp(connection: Connection, url: str) -> BrokerFacts:
    try:
        # Not `connection.connection`, which tries twice whatever the limits say.
        channel: Any = connection.default_channel
        said: Mapping[str, object] = channel.connection.server_properties
    except (amqp.AMQPError, OperationalError, OSError) as error:
        raise BrokerUnreachable(
            f"broker {url} cannot be used: {str(error) or type(error).__name__}"
        ) from error
    product, version = (_text(said.get(name)) for name in ("product", "version"))
    return BrokerFacts(kind="amqp", url=url, server=product, version=version)


def other_type(connection: Connection, queue: Queue) -> str | None:
    """Why RabbitMQ would not let this process use the queue: one of its name and another type is there.

    None when it fits, when there is none yet, and for every other broker.  `BrokerUnreachable`.
    """
    if connection.transport.driver_type != "amqp":
        return None
    try:
        with _bounded(connection, _AMQP_LIMITS) as bounded:
            # Looked for first: asking must not make it.
            queue.bind(bounded.default_channel).queue_declare(passive=True)
            queue.bind(bounded.default_channel).queue_declare()
    except amqp.NotFound:
        return None
    except amqp.PreconditionFailed as error:
        return str(error.reply_text)
    except (amqp.AMQPError, OperationalError, OSError) as error:
        url = _shown(connection.as_uri(include_password=True))
        raise BrokerUnreachable(
            f"broker {url} cannot be used: {str(error) or type(error).__name__}"
        ) from error
    return None


def _check_redis(connection: Connection, url: str) -> BrokerFacts:
    try:
        # kombu's own client: sentinel, TLS and socket URLs mean what they mean to a worker.
        channel: Any = connection.channel()
        client: redis.Redis = channel.client
        info: Mapping[str, object] = client.info()
        persistence = _persistence(client, info)
    except ValueError as error:
        raise BrokerUnsupported(f"broker {url}: {error}") from error
    except (redis.RedisError, OSError) as error:
        raise BrokerUnreachable(f"broker {url} cannot be used: {error}") from error
    version = str(info["redis_version"])
    if _parsed(version) < OLDEST_REDIS:
        raise BrokerUnsupported(
            f"broker {url} is Redis {version}; kombu needs 6.2 or newer:"
            " use Redis >= 6.2, any Valkey, or RabbitMQ"
        )
    return BrokerFacts(
        kind="redis",
        url=url,
        server="valkey" if "valkey_version" in info else "redis",
        version=version,
        persistence=persistence,
        maxmemory_policy=_text(info.get("maxmemory_policy")),
    )


def _persistence(client: redis.Redis, info: Mapping[str, object]) -> str:
    """aof, rdb, none or unknown."""
    if info.get("aof_enabled"):
        return "aof"
    try:
        saves = client.config_get("save")
    except redis.ResponseError:  # hosted servers hide CONFIG
        return "unknown"
    return "rdb" if saves.get("save") else "none"


def _parsed(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _shown(url: str) -> str:
    """The URL without its password."""
    return re.sub(r"(?<=://)([^@/]*):[^@]*@", r"\1:**@", url)
