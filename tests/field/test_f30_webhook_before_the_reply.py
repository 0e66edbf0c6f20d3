"""F30: the provider's webhook is faster than its reply, or the reply never comes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from celegraph import confirm_effect
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driven, Driver
from tests.support.driving import taken_over
from tests.support.dying import process_dies
from tests.support.paying import die_once, paying
from tests.support.provider import FakeProvider
from tests.support.scripted import Conversation, Scripted, scripted
from tests.support.shapes import State, chain


@contextmanager
def webhooks(told: threading.Event | None = None) -> Iterator[Scripted]:
    """The host's endpoint: confirms what it is told about."""

    def endpoint(c: Conversation) -> None:
        body = json.loads(c.read_request().partition(b"\r\n\r\n")[2])
        confirm_effect(body["key"], provider_ref=body["ref"], result=body["ref"])
        c.act()
        c.answer(200)

    with scripted(endpoint) as server:
        yield server


def nothing(drive: Driver) -> Driven:
    """A run that is over; the web process's installation is like its."""

    def node(state: State) -> None: ...

    return drive(chain(node), {})


def test_a_webhook_before_the_reply_is_accepted_and_both_agree(drive: Driver, provider: FakeProvider) -> None:
    with webhooks() as endpoint:
        provider.switch(webhook_before_reply=endpoint.url())
        run = drive(paying(provider), {})
        assert endpoint.acts == 1

    (act,) = provider.acts()
    assert (run.status, run.output["seen"]) == ("finished", [act.ref])
    assert [(a.status, a.provider_ref, a.attempts) for a in run.effects] == [("confirmed", act.ref, 1)]


def test_a_worker_killed_after_the_webhook_and_before_the_reply_sends_nothing_again(
    drive: Driver, provider: FakeProvider
) -> None:
    with using(nothing(drive).installation), webhooks() as endpoint:
        provider.switch(webhook_before_reply=endpoint.url(), busy_409=10.0)

        def killed() -> None:
            die_once(lambda: _confirmed(drive))
            drive(paying(provider), {}, run_id="webhook-then-killed")

        process_dies(killed)
    run = taken_over(drive(paying(provider), {}, run_id="webhook-then-killed"))

    (act,) = provider.acts()
    assert (run.status, run.output["seen"]) == ("finished", [act.ref])
    assert [(a.status, a.attempts) for a in run.effects] == [("confirmed", 1)]
    assert provider.calls(act.key) == 1


def _confirmed(drive: Driver) -> bool:
    import psycopg

    with psycopg.connect(drive.ledger.database_url) as conn:
        query = f"SELECT 1 FROM {drive.ledger.schema}.effects WHERE run_id = %s AND status = 'confirmed'"
        return conn.execute(query.encode(), ["webhook-then-killed"]).fetchone() is not None
