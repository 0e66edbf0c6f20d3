"""What an HTTP client's exception proves, each against a real server that behaves so."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest
import requests
import urllib3

from celegraph import EffectCall, effect
from celegraph.agent.declaration import Declaration
from celegraph.agent.not_done import is_not_done
from celegraph.errors import EffectNotDone
from tests.support.process import ROOT
from tests.support.scripted import Conversation, Script, Scripted, free_port, full_backlog, scripted
from tests.support.waiting import eventually

Client = Callable[[str], Any]
BODY = b'{"order": "o-1"}'


def with_httpx(url: str) -> Any:
    with httpx.Client(timeout=0.3) as client:
        return client.post(url, content=BODY).raise_for_status().json()


def with_requests(url: str) -> Any:
    answer = requests.post(url, data=BODY, timeout=0.3)
    answer.raise_for_status()
    return answer.json()


class Answered(Exception):
    """What a careful author raises over urllib3, which raises nothing for a status."""

    def __init__(self, status_code: int):
        self.status_code = status_code


def with_urllib3(url: str) -> Any:
    with urllib3.PoolManager(timeout=0.3) as pool:
        answer = pool.request("POST", url, body=BODY)
        if answer.status >= 400:
            raise Answered(answer.status)
        return answer.json()


def with_urllib(url: str) -> Any:
    with urllib.request.urlopen(url, BODY, timeout=0.3) as answer:
        return json.load(answer)


CLIENTS = pytest.mark.parametrize("client", [with_httpx, with_requests, with_urllib3, with_urllib])


@pytest.fixture
def decl() -> Declaration:
    """An effect that says nothing about its errors."""

    @effect("pay")
    def pay(call: EffectCall) -> None: ...

    return pay.declaration


@pytest.fixture
def untrusted() -> ssl.SSLContext:
    """TLS with a certificate that nobody has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ROOT / "tests/support/untrusted.pem")
    return context


def error_of(work: Callable[[], object]) -> BaseException:
    """What the call raised."""
    try:
        work()
    except Exception as error:
        return error
    raise AssertionError("the call went well")


# -- never sent ------------------------------------------------------------------------------------


@CLIENTS
def test_a_refused_connection_is_not_done(client: Client, decl: Declaration) -> None:
    assert is_not_done(decl, error_of(lambda: client(f"http://127.0.0.1:{free_port()}/pay")))


@CLIENTS
def test_a_name_that_nobody_knows_is_not_done(client: Client, decl: Declaration) -> None:
    assert is_not_done(decl, error_of(lambda: client("http://nobody.invalid/pay")))


@pytest.mark.parametrize("client", [with_httpx, with_requests, with_urllib3])
def test_a_connection_that_was_never_answered_is_not_done(client: Client, decl: Declaration) -> None:
    with full_backlog() as port:
        assert is_not_done(decl, error_of(lambda: client(f"http://127.0.0.1:{port}/pay")))


@CLIENTS
def test_a_certificate_that_is_not_trusted_is_not_done(
    client: Client, decl: Declaration, untrusted: ssl.SSLContext
) -> None:
    with scripted(acts_and_answers(200), tls=untrusted) as server:
        assert is_not_done(decl, error_of(lambda: client(server.url())))
        assert server.acts == 0


def test_a_proxy_that_cannot_be_reached_or_refuses_the_tunnel_is_not_done(decl: Declaration) -> None:
    def refuses(c: Conversation) -> None:
        c.read_until(b"\r\n\r\n")
        c.answer(403)

    with scripted(refuses) as proxy:
        for url in (proxy.url(""), f"http://127.0.0.1:{free_port()}"):
            for client in (through_requests, through_httpx):
                assert is_not_done(decl, error_of(partial(client, url)))


def through_requests(proxy: str) -> None:
    requests.post("https://pay.example/", proxies={"https": proxy}, timeout=1)


def through_httpx(proxy: str) -> None:
    with httpx.Client(proxy=proxy, timeout=1) as client:
        client.post("https://pay.example/")


@pytest.mark.parametrize("url", ["gopher://pay.example/x", "http://"])
@pytest.mark.parametrize("client", [with_httpx, with_requests, with_urllib3])
def test_an_address_that_is_none_is_not_done(client: Client, url: str, decl: Declaration) -> None:
    assert is_not_done(decl, error_of(lambda: client(url)))


# -- sent: nobody knows ----------------------------------------------------------------------------


def acts_then(end: Callable[[Conversation], None]) -> Script:
    def script(c: Conversation) -> None:
        c.read_request()
        c.act()
        end(c)

    return script


def acts_and_answers(status: int, body: str = "{}", **headers: str) -> Script:
    return acts_then(lambda c: c.answer(status, body, **headers))


def resets_early(c: Conversation) -> None:
    c.sock.recv(1)
    c.reset()


UNCLEAR: dict[str, Script] = {
    "resets before it has read all": resets_early,
    "resets after the act": acts_then(Conversation.reset),
    "closes after the act": acts_then(lambda c: c.sock.close()),
    "hangs after the act": acts_then(Conversation.hang),
    "answers what is no HTTP": acts_then(lambda c: c.say("nonsense\r\n\r\n")),
    "answers an unreadable body": acts_and_answers(200, "<html>"),
    "cuts its answer short": acts_then(lambda c: c.say("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")),
    **{f"says {status}": acts_and_answers(status) for status in (408, 409, 425, 500, 502, 503, 504)},
}


@CLIENTS
@pytest.mark.parametrize("script", UNCLEAR.values(), ids=UNCLEAR.keys())
def test_what_happened_after_the_request_left_is_a_doubt(
    client: Client, script: Script, decl: Declaration
) -> None:
    with scripted(script) as server:
        assert not is_not_done(decl, error_of(lambda: client(server.url())))


@CLIENTS
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422, 429])
def test_a_provider_that_reads_and_refuses_has_done_nothing(
    client: Client, status: int, decl: Declaration
) -> None:
    def refuses(c: Conversation) -> None:
        c.read_request()
        c.answer(status)

    with scripted(refuses) as server:
        assert is_not_done(decl, error_of(lambda: client(server.url())))


# -- a client that goes on by itself reports only its last request ---------------------------------


@pytest.mark.parametrize("then", ["refused", "404"])
@pytest.mark.parametrize("name", ["httpx", "requests", "urllib3", "urllib"])
def test_an_error_behind_a_followed_redirect_does_not_speak_for_the_first_request(
    name: str, then: str, decl: Declaration
) -> None:
    def elsewhere(c: Conversation) -> None:
        c.read_request()
        c.act()
        target = f"http://127.0.0.1:{free_port()}/" if then == "refused" else c.server.url("/receipt")
        c.answer(303, Location=target)

    def nothing(c: Conversation) -> None:
        c.read_request()
        c.answer(404)

    with scripted(elsewhere, nothing) as server:
        assert not is_not_done(decl, error_of(lambda: FOLLOWING[name](server.url())))
        assert server.acts == 1


def following_httpx(url: str) -> Any:
    with httpx.Client(timeout=1, follow_redirects=True) as client:
        return client.post(url, content=BODY).raise_for_status()


def following_urllib3(url: str) -> Any:
    with urllib3.PoolManager(timeout=1) as pool:
        answer = pool.request("POST", url, body=BODY)
        error = Answered(answer.status)
        error.response = answer  # type: ignore[attr-defined]
        raise error


FOLLOWING: dict[str, Client] = {
    "httpx": following_httpx,
    "requests": with_requests,
    "urllib3": following_urllib3,
    "urllib": with_urllib,
}


def acts_resets_and_refuses(server: Scripted) -> Script:
    def script(c: Conversation) -> None:
        c.read_request()
        c.act()
        # First deaf, then dead: the client's next try finds nobody.
        server.refuse()
        c.reset()

    return script


@pytest.mark.parametrize("in_requests", [False, True])
def test_a_refusal_after_urllib3s_own_retry_of_a_lost_request_is_a_doubt(
    in_requests: bool, decl: Declaration
) -> None:
    retries = urllib3.Retry(total=2, backoff_factor=0.0, allowed_methods=None)

    def call(url: str) -> object:
        if not in_requests:
            with urllib3.PoolManager(retries=retries) as pool:
                return pool.request("POST", url, body=BODY)
        with requests.Session() as session:
            session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
            return session.post(url, data=BODY)

    with scripted(Conversation.hang) as server:
        server.scripts[:] = [acts_resets_and_refuses(server)]
        error = error_of(lambda: call(server.url()))
        eventually(lambda: server.acts)

    assert "refused" in str(error)
    assert not is_not_done(decl, error)


def test_a_refusal_after_urllib3s_own_retries_of_refusals_is_not_done(decl: Declaration) -> None:
    retries = urllib3.Retry(total=3, backoff_factor=0.0, allowed_methods=None)

    def call() -> object:
        with urllib3.PoolManager(retries=retries) as pool:
            return pool.request("POST", f"http://127.0.0.1:{free_port()}/", body=BODY)

    assert is_not_done(decl, error_of(call))


def test_a_422_after_urllib3s_own_retry_of_a_500_is_a_doubt(decl: Declaration) -> None:
    retries = urllib3.Retry(total=2, backoff_factor=0.0, status_forcelist=[500], allowed_methods=None)

    def refuses(c: Conversation) -> None:
        c.read_request()
        c.answer(422)

    def call(url: str) -> None:
        with requests.Session() as session:
            session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
            session.post(url, data=BODY).raise_for_status()

    with scripted(acts_and_answers(500), refuses) as server:
        error = error_of(lambda: call(server.url()))

    assert isinstance(error, requests.HTTPError)
    assert not is_not_done(decl, error)


# -- the author's own word -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("says", "not_done"), [("not_done", True), ("doubt", False), (None, True), ("maybe", False)]
)
def test_the_authors_classify_goes_before_the_table(says: Any, not_done: bool) -> None:
    @effect("pay", classify=lambda error: says)
    def pay(call: EffectCall) -> None: ...

    assert is_not_done(pay.declaration, ConnectionRefusedError()) is not_done


def test_a_classify_that_fails_leaves_a_doubt() -> None:
    @effect("pay", classify=lambda error: error.code)  # type: ignore[attr-defined]
    def pay(call: EffectCall) -> None: ...

    assert not is_not_done(pay.declaration, EffectNotDone("surely"))
