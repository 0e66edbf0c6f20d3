"""HTTP providers that honour `Idempotency-Key`, called with the host's own httpx client.

    @effect("refund", in_doubt="retry", key_ttl="24h")
    def refund(call: EffectCall, charge: str, cents: int) -> dict[str, Any]:
        return http.post(call, client, "/v1/refunds", json={"charge": charge, "amount": cents})

The same call sends the same bytes on every attempt.  Each function has an async twin for
`async def` effects; what they share is not written twice.
"""

from __future__ import annotations

import json as _json
from collections.abc import Mapping
from typing import Any

import httpx

from celegraph.agent.declaration import EffectCall, Found, Happened, NotHappened, Unknown
from celegraph.errors import EffectNotDone

# 409 may mean that the same key is at work, 408 and 425 that nobody knows; 429 carries a Retry-After that
# the run sleeps for.  These stay httpx.HTTPStatusError, which the ledger and the run read by themselves.
_NO_PLAIN_NO = frozenset({408, 409, 425, 429})
_LONGEST_QUOTE = 500


class Refused(EffectNotDone):
    """The provider read the request and said no; `status` and `body` say what it answered."""

    def __init__(self, response: httpx.Response):
        body = _body_or_text(response)
        super().__init__(f"{response.request.url.path} answered {response.status_code}: {_quoted(body)}")
        self.status = response.status_code
        self.body = body


def post(
    call: EffectCall,
    client: httpx.Client,
    url: str,
    *,
    json: Any,
    ref: str | None = "id",
    headers: Mapping[str, str] | None = None,
) -> Any:
    """POST under the call's key; returns the decoded answer, whose field `ref` becomes `provider_ref`.

    Raises `Refused` for a plain no (EffectNotDone: the effect may be called again).  Everything else that
    is no success stays httpx's own error: a doubt, a 429 apart.  Redirects are not followed: behind one,
    nobody could say which of the servers has acted.
    """
    request = _request(call, client, url, json, headers)
    return _answer(call, client.send(request, follow_redirects=False), ref)


async def post_async(
    call: EffectCall,
    client: httpx.AsyncClient,
    url: str,
    *,
    json: Any,
    ref: str | None = "id",
    headers: Mapping[str, str] | None = None,
) -> Any:
    """As `post`, awaited."""
    request = _request(call, client, url, json, headers)
    return _answer(call, await client.send(request, follow_redirects=False), ref)


def look_up(client: httpx.Client, url: str, *, ref: str | None = "id") -> Found:
    """For `lookup=`: 2xx is `Happened` with the decoded answer, 404 and 410 `NotHappened`, else `Unknown`.

    Only for an address whose 404 means that there is no such act, not that it is not visible yet.
    """
    return _found(client.get(url, follow_redirects=False), ref)


async def look_up_async(client: httpx.AsyncClient, url: str, *, ref: str | None = "id") -> Found:
    """As `look_up`, awaited."""
    return _found(await client.get(url, follow_redirects=False), ref)


def _request(
    call: EffectCall,
    client: httpx.Client | httpx.AsyncClient,
    url: str,
    body: Any,
    headers: Mapping[str, str] | None,
) -> httpx.Request:
    return client.build_request(
        "POST",
        url,
        content=_bytes(body),
        headers={
            "Content-Type": "application/json",
            "Accept": "application/json",
            **(headers or {}),
            "Idempotency-Key": call.key,
        },
        timeout=_within(call, client.timeout),
    )


def _bytes(body: Any) -> bytes:
    # Sorted: arguments come back from the ledger with their keys in another order, and providers compare.
    text = _json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def _within(call: EffectCall, own: httpx.Timeout) -> httpx.Timeout:
    """The client's own limits, none longer than the call may take."""
    longest = call.timeout.total_seconds()
    limits = {name: longest if v is None else min(v, longest) for name, v in own.as_dict().items()}
    return httpx.Timeout(**limits)


def _answer(call: EffectCall, response: httpx.Response, ref: str | None) -> Any:
    if response.is_client_error and response.status_code not in _NO_PLAIN_NO:
        raise Refused(response)
    # 3xx is no success either: raise_for_status() raises for it, and the ledger takes it for a doubt.
    response.raise_for_status()
    body = response.json() if response.content else None
    call.provider_ref = _reference(body, ref) or call.provider_ref
    return body


def _found(response: httpx.Response, ref: str | None) -> Found:
    if response.status_code in (404, 410):
        return NotHappened()
    if not response.is_success:
        return Unknown(f"the provider answered {response.status_code}")
    try:
        body = response.json() if response.content else None
    except ValueError:
        return Unknown("the provider's answer is not JSON")
    return Happened(body, _reference(body, ref))


def _reference(body: Any, ref: str | None) -> str | None:
    value = body.get(ref) if ref is not None and isinstance(body, dict) else None
    return None if value is None else str(value)


def _body_or_text(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text


def _quoted(body: Any) -> str:
    text = body if isinstance(body, str) else _json.dumps(body, ensure_ascii=False)
    return text[:_LONGEST_QUOTE]
