"""Scenes on a real RabbitMQ with quorum queues."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kombu import pools

from tests.support.rabbitmq import QUORUM, RabbitMQ, rabbitmq
from tests.support.scene import Scene

QUEUES = ("celery", "celegraph", "celegraph.control")


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    """Started once; tests may stop, freeze and start it, and leave it running."""
    with rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as started:
        yield started


@pytest.fixture
def empty_node(node: RabbitMQ) -> RabbitMQ:
    """Without the queues of earlier tests."""
    node.delete(*QUEUES)
    # Of whole processes, and another test may have ended the connections in it.
    pools.reset()
    return node


@pytest.fixture
def scene(database_url: str, empty_node: RabbitMQ, tmp_path: Path) -> Iterator[Scene]:
    """A scene of this test alone."""
    with Scene(database_url, empty_node.url, tmp_path, celery=QUORUM) as made:
        yield made
