"""Transient errors wait in the database as long as the other side asks, and not more often than allowed."""

from __future__ import annotations

import email.message
import urllib.error
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
import requests
import urllib3.exceptions

import celegraph
from celegraph import RetryPolicy
from celegraph.agent.failures import Permanent, Transient, classify
from celegraph.tasks.control import retry_run
from celegraph.tasks.eager import drive_inline
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driven, Driver
from tests.support.driving import kinds, sweep, taken_over
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import State, chain


def _httpx(status: int, headers: dict[str, str]) -> Exception:
    request = httpx.Request("POST", "https://api.example.org")
    return httpx.HTTPStatusError(
        "refused", request=request, response=httpx.Response(status, headers=headers, request=request)
    )


def _requests(status: int, headers: dict[str, str]) -> Exception:
    response = requests.Response()
    response.status_code = status
    response.headers.update(headers)
    return requests.HTTPError("refused", response=response)


def _urllib(status: int, headers: dict[str, str]) -> Exception:
    message = email.message.Message()
    for name, value in headers.items():
        message[name] = value
    return urllib.error.HTTPError("https://api.example.org", status, "refused", message, None)


class _APIStatusError(Exception):
    """As OpenAI's and Anthropic's clients raise it: a status of its own, and the response of httpx."""

    def __init__(self, status: int, headers: dict[str, str]):
        super().__init__("refused")
        self.status_code = status
        self.response = httpx.Response(status, headers=headers)


CLIENTS: dict[str, Callable[[int, dict[str, str]], Exception]] = {
    "httpx": _httpx,
    "requests": _requests,
    "urllib": _urllib,
    "openai": _APIStatusError,
}


@pytest.fixture(params=CLIENTS)
def refused(request: pytest.FixtureRequest) -> Callable[[int, dict[str, str]], Exception]:
    """An error response of one client library."""
    return CLIENTS[request.param]


def meaning(error: Exception) -> Any:
    return classify(error, RetryPolicy(), own_connection_lost=False)


# -- what is transient, and for how long -----------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again_and_names_its_pause(refused: Any, status: int) -> None:
    assert meaning(refused(status, {})) == Transient(None)
    assert meaning(refused(status, {"Retry-After": "90"})) == Transient(timedelta(seconds=90))


def test_a_pause_may_be_named_as_a_date(refused: Any) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)

    after = meaning(refused(503, {"Retry-After": later})).after

    assert timedelta(minutes=59) < after <= timedelta(hours=1)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_asked_again(refused: Any, status: int) -> None:
    assert meaning(refused(status, {"Retry-After": "1"})) == Permanent()


@pytest.mark.parametrize(
    ("headers", "after"),
    [
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "9999999999999"}, timedelta(days=1)),
        ({"Retry-After": "0"}, timedelta(0)),
        ({"retry-after-ms": "1500", "Retry-After": "2"}, timedelta(seconds=1.5)),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, timedelta(0)),
    ],
)
def test_a_strange_pause_does_no_harm(headers: dict[str, str], after: timedelta | None) -> None:
    assert meaning(_httpx(429, headers)) == Transient(after)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (urllib3.exceptions.ConnectTimeoutError(), Transient()),
        (urllib3.exceptions.ProtocolError("broken"), Transient()),
        (urllib3.exceptions.SSLError("bad certificate"), Permanent()),
        (urllib3.exceptions.ResponseError("too many 503 error responses"), Transient()),
        (urllib3.exceptions.ResponseError("too many 404 error responses"), Permanent()),
        (urllib3.exceptions.ResponseError("too many redirects"), Permanent()),
    ],
    ids=lambda value: str(value) or type(value).__name__,
)
def test_what_urllib3_gives_up_on_counts_by_its_reason(error: Exception, expected: object) -> None:
    given_up = urllib3.exceptions.MaxRetryError(None, "/", error)  # type: ignore[arg-type]

    assert (
        meaning(given_up) == meaning(error) == meaning(requests.exceptions.RetryError(given_up)) == expected
    )


# -- caps ------------------------------------------------------------------------------------------


def _ring(run: Driven) -> None:
    """A doorbell, whether or not anything is due."""
    with using(run.installation):
        drive_inline(run.installation, run.run_id)


def test_a_pause_that_was_asked_for_is_slept_in_the_database_and_no_doorbell_shortens_it(
    lonely_drive: Driver, log: Log
) -> None:
    def ask(state: State) -> State:
        log("ask")
        if log.count("ask") == 1:
            raise _httpx(429, {"Retry-After": "120"})
        return {"seen": ["answered"]}

    run = lonely_drive(chain(ask), {}, sleeps=False)
    assert run.status == "ready"
    assert run.run.wake_at is not None
    assert run.run.now is not None
    assert timedelta(seconds=100) < run.run.wake_at - run.run.now <= timedelta(seconds=120)

    for _ in range(3):
        _ring(run)
        sweep(run)
    assert log.count("ask") == 1

    run.pass_time("121s").resume()
    assert run.output["seen"] == ["answered"]


def test_the_agents_own_policy_decides_pauses_number_and_kinds(lonely_drive: Driver, log: Log) -> None:
    class Odd(Exception):
        pass

    def odd(state: State) -> None:
        log("odd")
        raise Odd

    policy = RetryPolicy(max_attempts=3, first_delay=timedelta(minutes=1), factor=10, retry_on=(Odd,))
    run = lonely_drive(celegraph.Agent(graph=chain(odd), retry=policy), {}, sleeps=False)
    pauses = []
    while run.status == "ready":
        assert run.run.wake_at is not None
        assert run.run.now is not None
        pauses.append(round((run.run.wake_at - run.run.now).total_seconds(), -1))
        run.pass_time("1h").resume()

    assert pauses == [60, 300]
    assert (run.status, log.count("odd")) == ("failed", 3)


def test_retries_are_counted_across_deaths_and_deaths_across_retries(lonely_drive: Driver, log: Log) -> None:
    def broken(state: State) -> None:
        log("broken")
        if log.count("broken") == 2:
            die()
        raise TimeoutError

    agent = celegraph.Agent(graph=chain(broken), retry=RetryPolicy(max_attempts=3))
    run = lonely_drive(agent, {}, sleeps=False)
    run.pass_time("1h")
    process_dies(run.resume)

    taken_over(run)
    while run.status == "ready":
        assert run.run.crash_count == 1
        run.pass_time("1h").resume()

    assert (run.status, run.run.crash_count, run.run.retry_count) == ("failed", 1, 2)
    assert log.count("broken") == 4  # three that failed, one that died


def test_a_retried_run_goes_on_where_it_failed_and_with_all_its_retries(
    lonely_drive: Driver, log: Log
) -> None:
    repaired = False

    def first(state: State) -> State:
        log("first")
        return {"seen": ["first"]}

    def second(state: State) -> State:
        log("second")
        if not repaired:
            raise RuntimeError("no such account")
        if log.count("second") == 2:
            raise TimeoutError
        return {"seen": ["second"]}

    run = lonely_drive(chain(first, second), {})
    assert run.status == "failed"
    repaired = True
    with using(run.installation):
        retry_run(run.run_id, by="anna")

    run.resume()
    assert run.output["seen"] == ["first", "second"]
    assert (log.count("first"), log.count("second")) == (1, 3)
    assert kinds(run).count("retried") == 1
