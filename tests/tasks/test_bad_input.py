"""Bad input is refused early and helpfully: nothing is written, nothing is enqueued."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
import redis
from celery import Celery, chain, chord, group

import celegraph
from celegraph.errors import (
    CelegraphError,
    ConfigError,
    InvalidRunId,
    InvalidValue,
    NotInstalled,
    RunConflict,
    SchemaMissing,
    SchemaTooNew,
    TaskOptionRefused,
    UnknownAgent,
)
from celegraph.tasks.install import fit
from celegraph.tasks.installation import using
from celegraph.tasks.result import RunResult

TABLES = ("runs", "run_leases", "run_events", "effects", "approvals")


@pytest.fixture
def app(database_url: str, broker_url: str) -> Iterator[Celery]:
    """An app with one agent, the only one that start_run finds."""
    with installed(database_url, broker_url) as app:
        yield app


class installed:
    """A private app for the length of the block."""

    def __init__(self, database_url: str, broker_url: str, **settings: object):
        self.app = Celery("bad-input", broker=broker_url, set_as_current=False)
        self.app.conf.celegraph = {"database_url": database_url, **settings}
        self._using = using(fit(self.app, {"refund": "shop.agents:graph"}))

    def __enter__(self) -> Celery:
        self._using.__enter__()
        return self.app

    def __exit__(self, *error: Any) -> None:
        self._using.__exit__(*error)


def nothing_happened(database_url: str, broker_url: str) -> bool:
    with psycopg.connect(database_url) as conn:
        for table in TABLES:
            row = conn.execute(f"SELECT count(*) FROM celegraph.{table}".encode()).fetchone()
            assert row == (0,), table
    return queue_is_empty(broker_url)


def queue_is_empty(broker_url: str) -> bool:
    with redis.Redis.from_url(broker_url) as client:
        return bool(client.llen("celegraph") == 0 and client.llen("celegraph.control") == 0)


NAIVE = datetime(2026, 3, 29)  # noqa: DTZ001 - refused for that

BAD_STARTS: list[tuple[Any, type[Exception], str]] = [
    (lambda s: s.delay("refunds", {}), UnknownAgent, "did you mean 'refund'"),
    (lambda s: s.delay("mail", {}), UnknownAgent, "installed: refund"),
    (lambda s: s.delay("refund", {"at": NAIVE}), InvalidValue, r"input\.at.*isoformat"),
    (lambda s: s.delay("refund", {"who": object()}), InvalidValue, r"input\.who"),
    (lambda s: s.delay("refund", {"tags": {"a", "b"}}), InvalidValue, r"input\.tags"),
    (lambda s: s.delay("refund", {1: "a"}), InvalidValue, "input"),
    (lambda s: s.delay("refund", {"note": "nul \x00"}), InvalidValue, r"input\.note"),
    (lambda s: s.delay("refund", {"note": "\ud800"}), InvalidValue, r"input\.note"),
    (lambda s: s.delay("refund", {"n": [1, float("nan")]}), InvalidValue, r"input\.n\[1\]"),
    (lambda s: s.delay("refund", {"n": float("inf")}), InvalidValue, r"input\.n"),
    (lambda s: s.delay("refund", {}, run_id=""), InvalidRunId, "is empty"),
    (lambda s: s.delay("refund", {}, run_id="x" * 201), InvalidRunId, "the limit is 200"),
    (lambda s: s.delay("refund", {}, run_id="a\nb"), InvalidRunId, r"U\+000A"),
    (lambda s: s.delay("refund", {}, run_id="a\x00"), InvalidRunId, r"U\+0000"),
    (lambda s: s.delay("refund", {}, run_id=" a"), InvalidRunId, "space"),
    (lambda s: s.delay("refund", {}, run_id=17), InvalidRunId, r"use str\("),
    (lambda s: s.delay("refund"), TypeError, "start_run.delay"),
    (lambda s: s.delay("refund", {}, colour="red"), TypeError, "colour"),
    (lambda s: s.delay("refund", {}, deadline="soon"), ValueError, "'90s'"),
    (lambda s: s.delay("refund", {}, tags={"a": object()}), InvalidValue, "tags"),
    (lambda s: s("refund", {}), TypeError, r"start_run\.delay\(agent"),
    (lambda s: s.apply_async(("refund", {}), expires=60), TaskOptionRefused, "deadline="),
    (lambda s: s.apply_async(("refund", {}), link=s.s("refund", {})), TaskOptionRefused, "link"),
    (lambda s: s.apply_async(("refund", {}), link_error=s.s("refund", {})), TaskOptionRefused, "link_error"),
    (lambda s: s.apply_async(("refund", {}), chain=[s.s("refund", {})]), TaskOptionRefused, "one graph"),
    (lambda s: s.apply_async(("refund", {}), group_id="g"), TaskOptionRefused, "start them singly"),
    (lambda s: s.apply_async(("refund", {}), eta=NAIVE), TaskOptionRefused, "time zone"),
    (lambda s: s.apply_async(("refund", {}), eta="tomorrow"), TaskOptionRefused, "time zone"),
    (lambda s: s.apply_async(("refund", {}), countdown=float("nan")), TaskOptionRefused, "seconds"),
    (lambda s: s.apply_async(("refund", {}), countdown=1e12), InvalidValue, "hundred years"),
    (lambda s: s.delay("refund", {}, deadline="99999999d"), InvalidValue, "hundred years"),
    (lambda s: s.delay("refund", {}, tags="vip"), InvalidValue, "pass a dict"),
    (lambda s: s.apply_async(("refund", {}, "run-1"), task_id="run-2"), TypeError, "run_id"),
    (lambda s: s.apply_async(("refund", {}), {"run_id": "run-1"}, "run-2"), TaskOptionRefused, "differ"),
    (lambda s: s.admit("refund", {}, connection=None), ConfigError, "connection="),
    (lambda s: s.admit("refund", {}, connection="postgresql://"), ConfigError, "psycopg 3 or SQLAlchemy"),
    (lambda s: chain(s.si("refund", {}), s.si("refund", {})).apply_async(), TaskOptionRefused, "chain"),
    (lambda s: group(s.si("refund", {}), s.si("refund", {})).apply_async(), TaskOptionRefused, "group"),
    (lambda s: chord([s.si("refund", {})], s.si("refund", {})).apply_async(), Exception, "chord|group"),
]  # fmt: skip


@pytest.mark.parametrize(("start", "error", "says"), BAD_STARTS, ids=[str(n) for n in range(len(BAD_STARTS))])
def test_a_bad_start_is_refused_before_anything_is_written_or_enqueued(
    app: Celery, database_url: str, broker_url: str, start: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        start(celegraph.start_run)
    assert nothing_happened(database_url, broker_url)


def test_the_same_run_id_with_other_input_is_a_conflict_and_changes_nothing(
    app: Celery, broker_url: str
) -> None:
    first = celegraph.start_run.delay("refund", {"order": "o-17"}, run_id="refund-o-17")
    with redis.Redis.from_url(broker_url) as client:
        client.flushall()

    with pytest.raises(RunConflict, match="another input"):
        celegraph.start_run.delay("refund", {"order": "o-18"}, run_id="refund-o-17")

    assert first.run.input == {"order": "o-17"}
    assert queue_is_empty(broker_url)
    assert len(celegraph.trace_run("refund-o-17")) == 1


def test_a_good_start_is_one_row_and_one_message_of_a_run_id(app: Celery, broker_url: str) -> None:
    result = celegraph.start_run.delay("refund", {"order": "o-17"}, run_id="refund-o-17")

    assert (result.id, result.status, result.ready()) == ("refund-o-17", "ready", False)
    with redis.Redis.from_url(broker_url) as client:
        assert client.llen("celegraph") == 1
        message = client.lindex("celegraph", 0)
    assert message is not None
    assert b"o-17" in message  # in the run_id alone
    assert b"order" not in message


BAD_SETTINGS: list[tuple[dict[str, object], str]] = [
    ({"leese": "60s"}, "unknown option 'leese', did you mean 'lease'"),
    ({"colour": "red"}, "known: approval"),
    ({"lease": "soon"}, "'lease'"),
    ({"lease": "-1s"}, "'lease'"),
    ({"lease": "10s"}, "twice 'beat_every'"),
    ({"max_crashes": 0}, "'max_crashes'"),
    ({"schema": "Not A Name"}, "'schema'"),
    ({"database_url": ""}, "'database_url' is not set"),
    ({"database_url": "sqlite:///db"}, "SQLite"),
    ({"database_url": "mysql://host/db"}, "postgresql://"),
    ({"approval": {"dead_line": "2h"}}, r"approval\.dead_line"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "says"), BAD_SETTINGS, ids=[next(iter(s)) for s, _ in BAD_SETTINGS])
def test_a_configuration_that_cannot_work_is_refused_with_the_remedy(
    database_url: str, broker_url: str, settings: dict[str, object], says: str
) -> None:
    url = str(settings.pop("database_url", database_url))

    with installed(url, broker_url, **settings), pytest.raises(ConfigError, match=says):
        celegraph.start_run.delay("refund", {})
    assert nothing_happened(database_url, broker_url)


def test_a_missing_schema_is_refused_with_the_command(empty_database_url: str, broker_url: str) -> None:
    with installed(empty_database_url, broker_url), pytest.raises(SchemaMissing, match="celegraph migrate"):
        celegraph.start_run.delay("refund", {})
    assert queue_is_empty(broker_url)


def test_a_newer_schema_is_refused(database_url: str, broker_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("INSERT INTO celegraph.migrations VALUES (9999, 'future')")

    with installed(database_url, broker_url), pytest.raises(SchemaTooNew, match="upgrade celegraph"):
        celegraph.start_run.delay("refund", {})
    assert nothing_happened(database_url, broker_url)


@pytest.mark.parametrize("agents", [{}, None, ["refund"]])
def test_install_without_agents_is_refused(agents: Any) -> None:
    with pytest.raises(ConfigError, match="at least one agent"):
        celegraph.install(Celery("x", set_as_current=False), agents=agents)


def test_an_agent_that_is_no_import_path_is_refused_at_install() -> None:
    with pytest.raises(ConfigError, match=r"package\.module:graph"):
        celegraph.install(Celery("x", set_as_current=False), agents={"refund": "shop.agents.graph"})


def test_without_install_the_error_shows_the_line_to_add(monkeypatch: pytest.MonkeyPatch) -> None:
    from celegraph.tasks import installation

    # Other tests of this process have installed apps, perhaps as Celery's current one.
    monkeypatch.setattr(installation, "_latest", [])
    monkeypatch.setattr(installation, "_installations", {})

    with pytest.raises(NotInstalled, match=r"celegraph\.install\(app"):
        celegraph.list_runs()


@pytest.mark.parametrize("identifier", ["nobody", "nul \0", "half a character \ud800", "", 5])
@pytest.mark.parametrize(
    "call",
    [
        celegraph.get_run,
        celegraph.trace_run,
        celegraph.explain_run,
        celegraph.cancel_run,
        celegraph.pause_run,
        celegraph.resume_run,
        celegraph.retry_run,
        celegraph.release_run,
        celegraph.get_approval,
        celegraph.get_effect,
        celegraph.confirm_effect,
        lambda i: celegraph.confirm_effect(provider_ref=i),
        lambda i: celegraph.fail_effect(i, reason="no such card"),
        lambda i: celegraph.resolve_effect(i, "happened", by="anna"),
        lambda i: celegraph.release_effect(i, by="anna"),
        lambda i: celegraph.decide(i, "approve", by="anna"),
        lambda i: list(celegraph.stream_run(i)),
        lambda i: RunResult(i).status,
    ],
)
def test_what_does_not_exist_is_a_named_lookup_error(app: Celery, call: Any, identifier: Any) -> None:
    with pytest.raises(LookupError) as refused:
        call(identifier)
    assert isinstance(refused.value, CelegraphError)


def test_a_listener_with_an_impossible_id_costs_the_others_nothing(app: Celery) -> None:
    celegraph.start_run.delay("refund", {}, run_id="r-1")
    with pytest.raises(LookupError):
        next(iter(celegraph.stream_run("half a character \ud800")))

    first = next(iter(celegraph.stream_run("r-1")))

    assert first.kind == "event"  # not that the server of the chunks does not answer


@pytest.mark.parametrize("what", ["nobody", "nul \0", "half a character \ud800"])
def test_a_list_of_what_does_not_exist_is_empty(app: Celery, what: str) -> None:
    assert celegraph.list_runs(agent=what) == celegraph.list_runs(status=what) == []
    assert celegraph.list_approvals(run_id=what) == celegraph.list_approvals(status=what) == []


def test_a_delay_that_has_passed_is_no_delay(app: Celery) -> None:
    past = datetime.now().astimezone() - timedelta(hours=1)

    run = celegraph.start_run.apply_async(("refund", {}), eta=past).run

    assert run.wake_at is not None
    assert run.now is not None
    assert run.wake_at <= run.now
