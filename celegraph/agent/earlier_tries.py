"""Requests that a client made before the one it reports.

httpx, requests, urllib3 and urllib follow redirects, and urllib3 (also inside requests) tries again by
itself.  Their exception tells of the last request only: "connection refused" may follow a request that
acted.  What came before is found in the client's own frames of the traceback, or in the response.
"""

from __future__ import annotations

from collections.abc import Iterable
from traceback import walk_tb
from types import FrameType
from typing import Any

from celegraph.agent import proofs


def may_have_sent(error: BaseException) -> bool:
    """An earlier request of the same client call may have reached the provider."""
    response = getattr(error, "response", None)
    if getattr(response, "history", None):
        return True
    for holder in (response, getattr(response, "raw", None)):
        if _reached(getattr(getattr(holder, "retries", None), "history", ())):
            return True
    return any(_frame_has(frame) for frame, _ in walk_tb(error.__traceback__))


def _frame_has(frame: FrameType) -> bool:
    where = (str(frame.f_globals.get("__name__")), frame.f_code.co_name)
    match where:
        case ("httpx._client", "_send_handling_redirects"):
            return bool(frame.f_locals.get("history"))
        case ("requests.sessions", "resolve_redirects") | ("urllib.request", "http_error_302"):
            return True
        case ("urllib3.connectionpool", "urlopen"):
            return _reached(getattr(frame.f_locals.get("retries"), "history", ()))
    return False


def _reached(history: Iterable[Any]) -> bool:
    """One of urllib3's earlier requests got further than a refused connection."""
    return any(past.error is None or not _never_left(past.error) for past in history)


def _never_left(error: BaseException) -> bool:
    return any(proofs.never_sent(seen) == "not_done" for seen in proofs.chain(error))
