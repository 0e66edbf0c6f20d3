"""Local servers, each case as every kind of user, in a clone under a 0700 home."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from celegraph.dev.stray import command_of
from tests.support.clone import Clone, Held
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def _nothing_is_kept(clone: Clone) -> Iterator[None]:
    yield
    clone.forget_data()


def test_servers_answer_and_end_with_their_block(clone: Clone) -> None:
    with clone.hold_servers("temporary") as held:
        with psycopg.connect(held.database_url) as connection:
            assert connection.execute("SHOW max_connections").fetchone() == ("200",)
        with redis.Redis.from_url(held.broker_url) as client:
            assert client.config_get("append*")["appendonly"] == "yes"
        assert held.facts["imported"] == []

    assert not any(directory.parent.exists() for directory in held.directories)


def test_no_permission_of_the_users_is_touched(clone: Clone) -> None:
    before = clone.modes()

    with clone.hold_servers("temporary"):
        during = clone.modes()

    assert {p: m for p, m in during.items() if p in before} == before
    assert stat.S_IMODE(before[clone.home]) == 0o700


def test_nobody_gets_in_without_the_password(clone: Clone) -> None:
    with clone.hold_servers("temporary") as held:
        for user in ("celegraph", "postgres", "root"):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(held.database_url, user=user, password="wrong")
        with pytest.raises(psycopg.OperationalError, match="no password supplied"):
            psycopg.connect(_without_password(held.database_url))
        with (
            redis.Redis.from_url(_without_password(held.broker_url)) as client,
            pytest.raises(redis.AuthenticationError),
        ):
            client.ping()


def test_no_password_is_readable_by_others(clone: Clone) -> None:
    with clone.hold_servers("temporary") as held:
        passwords = [_password(held.database_url), _password(held.broker_url)]
        for pid in [*held.servers, *held.guards]:
            assert not any(password in command_of(pid) for password in passwords)
        for path in _files(held):
            if any(password.encode() in path.read_bytes() for password in passwords):
                assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_servers_end_when_their_parent_is_killed(clone: Clone) -> None:
    with clone.hold_servers("temporary") as held:
        held.kill([])

        held.await_end()
        eventually(lambda: not any(directory.parent.exists() for directory in held.directories))


def test_a_forked_child_does_not_keep_the_servers_of_a_killed_parent(clone: Clone) -> None:
    with clone.hold_servers("temporary", "fork") as held:
        held.kill([])

        try:
            held.await_end()
            assert command_of(held.facts["child"])
        finally:
            os.kill(held.facts["child"], signal.SIGKILL)


def test_ctrl_c_is_for_the_caller_and_not_for_the_servers(clone: Clone) -> None:
    with clone.hold_servers("temporary") as held:
        caller = os.getpgid(held.process.pid)
        assert all(os.getpgid(pid) != caller for pid in [*held.guards, *held.servers])

        os.killpg(caller, signal.SIGINT)

        assert held.next_word() == {"running_after_ctrl_c": [True, True]}


@pytest.mark.parametrize("killed", ["the caller", "caller and guards", "everything"])
def test_a_start_right_after_kill_9_keeps_the_data(clone: Clone, killed: str) -> None:
    with clone.hold_servers("kept") as held:
        _write(held)
        with_it = {"caller and guards": held.guards, "everything": [*held.guards, *held.servers]}
        held.kill(with_it.get(killed, []))

        with clone.hold_servers("kept") as again:
            assert _read(again) == ("before", b"before")
            assert again.directories == held.directories


def test_a_second_start_in_the_same_directory_is_refused(clone: Clone) -> None:
    with clone.hold_servers("kept") as held:
        _write(held)

        second = clone.start("kept")
        _, complaint = second.communicate()

        assert second.returncode == 1
        assert f"is in use by process {held.process.pid}; stop that one first" in complaint
        assert _read(held) == ("before", b"before")


def test_a_first_start_that_was_interrupted_is_made_again(clone: Clone) -> None:
    with clone.hold_servers("kept") as held:
        pass
    data = held.directories[0] / "data"
    data.rename(data.with_name("data.unfinished"))
    (data.with_name("data.unfinished") / "PG_VERSION").unlink()

    with clone.hold_servers("kept") as again, psycopg.connect(again.database_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_an_old_pid_that_now_is_a_strangers_does_not_stop_the_start(clone: Clone) -> None:
    with clone.hold_servers("kept") as held:
        _write(held)
        held.kill([*held.guards, *held.servers])
    pid_file = held.directories[0] / "data" / "postmaster.pid"
    _, *rest = pid_file.read_text().splitlines()

    with clone.hold_servers("temporary") as stranger:
        with pid_file.open("r+") as file:
            file.write("\n".join([str(stranger.servers[0]), *rest]) + "\n")
        with clone.hold_servers("kept") as again:
            assert _read(again) == ("before", b"before")


def test_clean_removes_what_was_kept_but_nothing_that_runs(clone: Clone) -> None:
    with clone.hold_servers("kept") as held:
        refused = clone.python_module("celegraph.dev.clean")
        assert "HomeInUse" in refused.stderr
        _write(held)

    done = clone.python_module("celegraph.dev.clean")

    assert (done.returncode, done.stderr) == (0, "")
    assert not any(directory.parent.exists() for directory in held.directories)


def _write(held: Held) -> None:
    with psycopg.connect(held.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 'before' AS word")
    with redis.Redis.from_url(held.broker_url) as client:
        client.set("kept", "before")


def _read(held: Held) -> tuple[object, object]:
    with psycopg.connect(held.database_url) as connection:
        row = connection.execute("SELECT word FROM kept").fetchone()
    with redis.Redis.from_url(held.broker_url) as client:
        return row and row[0], client.get("kept")


def _password(url: str) -> str:
    return url.split("@")[0].rsplit(":", 1)[1]


def _without_password(url: str) -> str:
    return url.replace(f":{_password(url)}@", "@")


def _files(held: Held) -> Iterator[Path]:
    for directory in held.directories:
        yield from (path for path in directory.iterdir() if path.is_file())
