"""What we use of Celery, billiard and kombu without their promise."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable

import billiard.common
import billiard.pool
import pytest
from celery import Celery, beat
from celery.app import trace
from celery.worker import strategy
from kombu import Connection

from celegraph.tasks import advance, quiet, softlimit


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
def test_a_pool_child_that_a_signal_ends_exits_with_a_code_that_we_know(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(billiard.common, "_should_have_exited", [False])
    monkeypatch.setattr(billiard.common, "maybe_setsignal", lambda *_: None)
    end: Callable[[int, object], None] = vars(billiard.common)["_shutdown_cleanup"]

    with pytest.raises(SystemExit) as left:
        end(number, None)

    assert left.value.code in advance._SIGNALLED


@pytest.mark.skipif(sys.platform == "win32", reason="no soft limits there")
def test_the_soft_limit_comes_as_the_signal_we_wait_for() -> None:
    assert billiard.pool.SIG_SOFT_TIMEOUT == softlimit._SOFT


def test_the_loggers_that_speak_of_single_tasks_have_the_names_we_filter() -> None:
    speaking: list[logging.Logger] = [vars(module)["logger"] for module in (strategy, trace, beat)]

    assert sorted(logger.name for logger in speaking) == sorted(quiet._LOGGERS)


def test_a_queue_can_be_added_to_what_a_worker_consumes() -> None:
    queues = Celery("host", set_as_current=False).amqp.queues

    queues.select_add(queues.new_missing("celegraph"))

    assert set(queues.consume_from) == {"celery", "celegraph"}


def test_a_clone_of_a_connection_takes_other_transport_options_and_keeps_the_rest() -> None:
    host = Connection("redis://:secret@127.0.0.1:6379/3", transport_options={"global_keyprefix": "shop:"})

    options = {**(host.transport_options or {}), "socket_timeout": 1}

    clone = host.clone(transport_options=options, connect_timeout=1)

    assert clone.as_uri(include_password=True) == host.as_uri(include_password=True)
    assert clone.transport_options == {"global_keyprefix": "shop:", "socket_timeout": 1}
    assert clone.transport.driver_type == "redis"
