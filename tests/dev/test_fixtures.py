"""The fixtures every other test stands on."""

from __future__ import annotations

import psycopg
import pytest
import redis


@pytest.mark.parametrize("_again", [1, 2])
def test_each_test_has_a_database_of_its_own(database_url: str, _again: int) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE left_by_an_earlier_test (id int)")


@pytest.mark.parametrize("_again", [1, 2])
def test_each_test_has_an_empty_broker(broker_url: str, _again: int) -> None:
    with redis.Redis.from_url(broker_url) as client:
        assert client.dbsize() == 0
        client.set("left by an earlier test", "x")
