"""The HTTP helper against a real server: what it sends, what it raises, what that means for the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest

from celegraph import EffectCall, Happened, NotHappened, Unknown, effect
from celegraph.agent.not_done import is_not_done
from celegraph.contrib.providers import http
from tests.support.scripted import Conversation, scripted

Post = Callable[[EffectCall, str, Any], Any]


@effect("pay")
def pay(call: EffectCall) -> None:
    """Never called: its declaration says nothing about errors."""


def call(timeout: float = 5) -> EffectCall:
    return EffectCall("cg-key", 1, "run-1", "pay", timeout=timedelta(seconds=timeout))


def plain(c: EffectCall, url: str, body: Any) -> Any:
    with httpx.Client() as client:
        return http.post(c, client, url, json=body)


def awaited(c: EffectCall, url: str, body: Any) -> Any:
    async def run() -> Any:
        async with httpx.AsyncClient() as client:
            return await http.post_async(c, client, url, json=body)

    return asyncio.run(run())


BOTH = pytest.mark.parametrize("post", [plain, awaited])


@BOTH
def test_the_key_is_sent_and_the_reference_kept(post: Post) -> None:
    heard: list[bytes] = []

    def answers(c: Conversation) -> None:
        heard.append(c.read_request())
        c.answer(201, '{"id": 17, "ok": true}')

    made = call()
    with scripted(answers) as server:
        assert post(made, server.url(), {"b": 1, "a": "ü"}) == {"id": 17, "ok": True}

    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert b"idempotency-key: cg-key" in head.lower()
    assert body == '{"a":"ü","b":1}'.encode()
    assert made.provider_ref == "17"


@BOTH
def test_the_same_call_sends_the_same_bytes_in_whatever_order_its_arguments_come(post: Post) -> None:
    bodies: list[bytes] = []

    def answers(c: Conversation) -> None:
        bodies.append(c.read_request().partition(b"\r\n\r\n")[2])
        c.answer(200)

    with scripted(answers) as server:
        post(call(), server.url(), {"a": {"x": 1, "y": 2}, "b": 1})
        post(call(), server.url(), {"b": 1, "a": {"y": 2, "x": 1}})

    assert bodies[0] == bodies[1]


@BOTH
@pytest.mark.parametrize("status", [400, 402, 404, 422])
def test_a_plain_no_is_refused_with_what_the_provider_said(post: Post, status: int) -> None:
    def refuses(c: Conversation) -> None:
        c.read_request()
        c.answer(status, '{"error": "no such charge"}')

    with scripted(refuses) as server, pytest.raises(http.Refused, match="no such charge") as refused:
        post(call(), server.url(), {})

    assert (refused.value.status, refused.value.body) == (status, {"error": "no such charge"})
    assert is_not_done(pay.declaration, refused.value)


@BOTH
@pytest.mark.parametrize(
    ("status", "not_done"),
    [(303, False), (307, False), (408, False), (409, False), (429, True), (500, False)],
)
def test_every_other_answer_is_the_clients_own_error(post: Post, status: int, not_done: bool) -> None:
    def answers(c: Conversation) -> None:
        c.read_request()
        c.answer(status, Location="/elsewhere", Retry_After="7")

    with scripted(answers) as server:
        with pytest.raises(httpx.HTTPStatusError) as raised:
            post(call(), server.url(), {})
        assert server.met == 1  # redirects are not followed

    assert is_not_done(pay.declaration, raised.value) is not_done


@BOTH
def test_a_call_waits_no_longer_than_the_effect_may_take(post: Post) -> None:
    with scripted(Conversation.hang) as server, pytest.raises(httpx.ReadTimeout) as late:
        post(call(timeout=0.2), server.url(), {})

    assert not is_not_done(pay.declaration, late.value)


def test_an_unreadable_answer_is_a_doubt() -> None:
    def answers(c: Conversation) -> None:
        c.read_request()
        c.answer(200, "<html>")

    with scripted(answers) as server, pytest.raises(ValueError, match="Expecting value") as unreadable:
        plain(call(), server.url(), {})

    assert not is_not_done(pay.declaration, unreadable.value)


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (200, '{"id": "re_1"}', Happened({"id": "re_1"}, "re_1")),
        (404, "{}", NotHappened()),
        (503, "{}", Unknown("the provider answered 503")),
        (200, "<html>", Unknown("the provider's answer is not JSON")),
    ],
)
def test_a_look_up_believes_only_clear_answers(status: int, body: str, found: object) -> None:
    def answers(c: Conversation) -> None:
        c.read_request()
        c.answer(status, body)

    async def ask(url: str) -> object:
        async with httpx.AsyncClient() as client:
            return await http.look_up_async(client, url)

    with scripted(answers) as server, httpx.Client() as client:
        assert http.look_up(client, server.url()) == found
        assert asyncio.run(ask(server.url())) == found
