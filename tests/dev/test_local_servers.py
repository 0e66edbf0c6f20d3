"""`LocalServers` as a caller sees it: whose servers, where, and how to break them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from celegraph.dev import server as server_module
from celegraph.dev.errors import LocalServersError, ServerFailed
from celegraph.dev.home import Home
from celegraph.dev.postgres import Postgres
from celegraph.dev.servers import LocalServers
from celegraph.dev.stray import command_of
from celegraph.dev.valkey import Valkey
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def servers() -> Iterator[LocalServers]:
    with pytest.MonkeyPatch.context() as environment:
        for name in ("CELEGRAPH_DATABASE_URL", "DATABASE_URL", "CELERY_BROKER_URL"):
            environment.delenv(name, raising=False)
        started = LocalServers(fsync=True, temporary=True)
    with started:
        yield started


def test_urls_from_the_environment_win_and_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", "postgresql://second")
    monkeypatch.setenv("CELEGRAPH_DATABASE_URL", "postgresql://first")
    monkeypatch.setenv("CELERY_BROKER_URL", "amqp://rabbit")

    with LocalServers() as servers:
        assert servers.database_url == "postgresql://first"
        assert servers.broker_url == "amqp://rabbit"
        with pytest.raises(LocalServersError, match="PostgreSQL is not ours to control"):
            _ = servers.postgres
        with pytest.raises(LocalServersError, match="the broker is not ours to control"):
            _ = servers.valkey

    assert not list(tmp_path.iterdir())


def test_only_the_server_that_the_environment_lacks_is_started(
    no_urls: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere")

    with LocalServers(temporary=True) as servers:
        assert servers.database_url == "postgresql://elsewhere"
        with redis.Redis.from_url(servers.broker_url) as client:
            assert client.ping()


def test_with_fsync_every_acknowledged_write_is_on_disk(servers: LocalServers) -> None:
    with psycopg.connect(servers.database_url) as connection:
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
    with redis.Redis.from_url(servers.broker_url) as client:
        assert client.config_get("appendfsync") == {"appendfsync": "always"}


@pytest.mark.parametrize("kind", [Postgres, Valkey])
def test_a_port_that_was_just_taken_is_replaced_by_another(
    kind: type[Postgres | Valkey], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        ports = iter([taken, server_module.free_port()])
        monkeypatch.setattr(server_module, "free_port", lambda: next(ports))

        with kind(Home.passing(), fsync=False) as server:
            assert server.running
            assert str(taken) not in server.url


def test_a_killed_postgres_comes_back_under_the_same_url(servers: LocalServers) -> None:
    with psycopg.connect(servers.database_url) as connection:
        connection.execute("CREATE TABLE written (id int)")
    url, pid = servers.database_url, servers.postgres.pid

    servers.postgres.kill()

    assert not servers.postgres.running
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)
    servers.postgres.start()
    assert servers.postgres.pid != pid
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM written").fetchone() == (0,)


def test_postgres_comes_back_while_a_backend_of_the_killed_one_still_works(
    servers: LocalServers,
) -> None:
    busy = threading.Thread(target=_keep_a_backend_busy, args=[servers.database_url])
    busy.start()
    with psycopg.connect(servers.database_url, autocommit=True) as connection:
        eventually(lambda: connection.execute(_BUSY_BACKENDS).fetchone() == (1,))

    servers.postgres.kill()
    servers.postgres.start()

    with psycopg.connect(servers.database_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    busy.join()


def test_a_killed_broker_comes_back_with_its_messages(servers: LocalServers) -> None:
    with redis.Redis.from_url(servers.broker_url) as client:
        client.lpush("queue", "message")

        servers.valkey.kill()
        servers.valkey.start()

        assert client.lrange("queue", 0, -1) == [b"message"]


def test_a_stopped_server_says_so_and_can_be_restarted(servers: LocalServers) -> None:
    servers.valkey.stop()

    assert not servers.valkey.running
    with pytest.raises(ServerFailed, match="valkey: is not running"):
        _ = servers.valkey.pid
    servers.valkey.restart()
    with redis.Redis.from_url(servers.broker_url) as client:
        assert client.ping()


def test_nothing_is_left_when_somebody_kills_the_guards(no_urls: None) -> None:
    with LocalServers(fsync=False, temporary=True) as servers:
        own = [servers.postgres, servers.valkey]
        pids = [server.pid for server in own]
        for server in own:
            os.kill(server.guard_pid, signal.SIGKILL)

    assert not any(command_of(pid) for pid in pids)
    assert not own[0].directory.parent.exists()


def test_a_server_that_cannot_start_shows_its_log(no_urls: None) -> None:
    home = Home.passing()
    with LocalServers(fsync=False, home=home.path) as servers:
        data = servers.postgres.directory / "data"
    (data / "PG_VERSION").write_text("9.6\n")

    with (
        pytest.raises(ServerFailed, match="database files are incompatible"),
        LocalServers(fsync=False, home=home.path),
    ):
        pass

    home.remove()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's servers run as somebody else")
def test_root_is_told_when_a_home_is_closed_to_its_servers(no_urls: None, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)

    with pytest.raises(LocalServersError, match="who cannot enter"), LocalServers(home=tmp_path):
        pass


def _keep_a_backend_busy(url: str) -> None:
    # A running query does not notice that the postmaster is gone; what comes after it does.
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url) as connection:
        connection.execute("SELECT count(*) FROM generate_series(1, 12000000) -- busy")


_BUSY_BACKENDS = """
SELECT count(*) FROM pg_stat_activity
 WHERE state = 'active' AND query LIKE '%-- busy' AND pid <> pg_backend_pid()
"""
