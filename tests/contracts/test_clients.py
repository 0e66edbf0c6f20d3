"""The frames by which an error's history is read: functions and locals of clients that hosts use."""

from __future__ import annotations

import smtplib
import urllib.request
from types import FunctionType

import httpx._client
import pytest
import requests.sessions
import urllib3.connectionpool

from celegraph.agent import proofs


@pytest.mark.parametrize("client", [httpx.Client, httpx.AsyncClient])
def test_httpx_follows_redirects_where_we_look(client: type[object]) -> None:
    function = client.__dict__["_send_handling_redirects"]

    assert function.__module__ == "httpx._client"
    assert "history" in function.__code__.co_varnames


@pytest.mark.parametrize(
    ("owner", "name", "module"),
    [
        (requests.sessions.SessionRedirectMixin, "resolve_redirects", "requests.sessions"),
        (urllib.request.HTTPRedirectHandler, "http_error_302", "urllib.request"),
        (urllib3.connectionpool.HTTPConnectionPool, "urlopen", "urllib3.connectionpool"),
    ],
)
def test_other_clients_follow_redirects_and_try_again_where_we_look(
    owner: type[object], name: str, module: str
) -> None:
    function = owner.__dict__[name]

    assert isinstance(function, FunctionType)
    assert (function.__module__, function.__code__.co_name) == (module, name)


def test_urllib3_keeps_its_retries_in_a_local() -> None:
    assert "retries" in urllib3.connectionpool.HTTPConnectionPool.urlopen.__code__.co_varnames


@pytest.mark.parametrize("name", sorted((proofs._BEFORE_DATA | proofs._AFTER_DATA) - {"__exit__"}))
def test_the_steps_of_a_mail_are_smtplibs(name: str) -> None:
    function = getattr(smtplib.SMTP, name)

    assert (function.__module__, function.__code__.co_name) == ("smtplib", name)
