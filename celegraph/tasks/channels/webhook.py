"""Notices by webhook: a POST that its receiver can check and recognise.

    Idempotency-Key: the notice's key, the same on every try
    Celegraph-Signature: t=<seconds since 1970>,v1=<hex HMAC-SHA256 of "<t>.<body>">

With several secrets there are several v1, one of each.  The body is the same bytes on every try.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Sequence
from http.client import HTTPResponse
from typing import Any
from urllib.request import HTTPRedirectHandler, Request, build_opener

from celegraph.agent.declaration import EffectCall
from celegraph.channels import WebhookChannel
from celegraph.tasks.channels import address_of
from celegraph.tasks.notice import Notice

_PART_OF_TIMEOUT = 0.8  # as in `agent.smtp`: no byte may follow the claim's horizon


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would carry the link to somebody the host has not named."""

    def redirect_request(self, *_: Any) -> None:
        return None


def tell_by_webhook(channel: WebhookChannel, call: EffectCall, notice: Notice) -> int:
    """POST the notice; returns the status once the receiver has answered 2xx."""
    body = body_of(channel, notice)
    request = Request(  # noqa: S310  # the scheme was checked with the configuration
        channel.url.get_secret_value(),
        data=body,
        method="POST",
        headers={
            "Content-Type": "application/json",
            "User-Agent": "celegraph",
            "Idempotency-Key": call.key,
            "Celegraph-Signature": signature(
                [s.get_secret_value() for s in channel.secret], body, int(time.time())
            ),
        },
    )
    limit = call.timeout.total_seconds() * _PART_OF_TIMEOUT
    answer: HTTPResponse
    with build_opener(_NoRedirect).open(request, timeout=limit) as answer:
        # The status is the answer; a body of any length is not read.
        return answer.status


def body_of(channel: WebhookChannel, notice: Notice) -> bytes:
    """What is told: the question and the way to it, never its arguments."""
    told = {
        "key": notice.key,
        "event": notice.what,
        "n": notice.n,
        "approval_id": notice.approval.approval_id,
        "run_id": notice.approval.run_id,
        "agent": notice.approval.agent,
        "kind": notice.approval.kind,
        "prompt": notice.approval.prompt,
        "to": address_of(channel, notice.to),
        "deadline": notice.approval.deadline_at.isoformat() if notice.approval.deadline_at else None,
        "on_timeout": notice.approval.silence,
        "link": notice.link,
    }
    return json.dumps(told, ensure_ascii=False, sort_keys=True).encode()


def signature(secrets: Sequence[str], body: bytes, at: int) -> str:
    """The header's value."""
    signed = b"%d.%b" % (at, body)
    digests = (hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in secrets)
    return ",".join([f"t={at}", *(f"v1={digest}" for digest in digests)])
