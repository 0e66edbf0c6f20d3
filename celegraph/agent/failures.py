"""The one table that says what an exception from the graph means for the run."""

from __future__ import annotations

import asyncio
import re
import socket
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.error import HTTPError

from langgraph.errors import (
    GraphDrained,
    GraphRecursionError,
    InvalidUpdateError,
    is_invalid_resume,
)

from celegraph.agent.class_names import names_of
from celegraph.agent.spec import RetryPolicy
from celegraph.errors import CelegraphError, ClockBehind, Fenced, InheritedState
from celegraph.ledger.db_errors import is_bad_value, is_fenced, is_passing
from celegraph.ledger.values import clean_json

# Status codes after which the same request may succeed later (RFC 9110, RFC 6585).
_TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
# Whatever the other side asks for.
_LONGEST_PAUSE = timedelta(days=1)
_TRANSIENT = frozenset(
    {
        "httpx.TransportError",
        "requests.exceptions.ConnectionError",
        "requests.exceptions.Timeout",
        "urllib3.exceptions.TimeoutError",
        "urllib3.exceptions.ProtocolError",
        # The ORM's own names for a lost connection: its errors are not psycopg's, they wrap them.
        "django.db.utils.InterfaceError",
        "django.db.utils.OperationalError",
        "sqlalchemy.exc.InterfaceError",
        "sqlalchemy.exc.OperationalError",
        "smtplib.SMTPServerDisconnected",
        "smtplib.SMTPConnectError",
        "openai.APIConnectionError",
        "anthropic.APIConnectionError",
    }
)
# Errors that only say where the real one is.
_WRAPPERS = frozenset(
    {"urllib3.exceptions.MaxRetryError", "urllib.error.URLError", "requests.exceptions.RetryError"}
)


@dataclass(frozen=True)
class Transient:
    """Try again later; `after` is what the other side asked for."""

    after: timedelta | None = None


@dataclass(frozen=True)
class Permanent:
    """The same step would fail again."""


@dataclass(frozen=True)
class Lost:
    """The connection or the lease is gone: say nothing, another owner goes on."""


@dataclass(frozen=True)
class InvalidResume:
    """The graph refused a delivered decision."""


@dataclass(frozen=True)
class StoppedForDrain:
    """The graph stopped at a superstep because it was asked to."""


Meaning = Transient | Permanent | Lost | InvalidResume | StoppedForDrain


def classify(error: BaseException, retry: RetryPolicy, *, own_connection_lost: bool) -> Meaning:
    """First match wins; what nobody knows is permanent."""
    if isinstance(error, GraphDrained):
        return StoppedForDrain()
    if isinstance(error, Fenced) or is_fenced(error) or own_connection_lost:
        return Lost()
    if is_invalid_resume(error):
        return InvalidResume()
    if isinstance(error, ClockBehind):
        return Transient()
    if isinstance(error, InheritedState):
        # Before the agent's own retry: the next attempt would take the other run's state for its own.
        return Permanent()
    if retry.covers(error):
        return Transient(_retry_after(error))
    if is_bad_value(error) or isinstance(
        error,
        CelegraphError | GraphRecursionError | InvalidUpdateError | TypeError | ValueError | MemoryError,
    ):
        return Permanent()
    if _is_transient(error):
        return Transient(_retry_after(error))
    return Permanent()


def is_the_codes_own(error: BaseException) -> bool:
    """The host's code has failed, also by a cancellation of its own making: nobody cancels this task."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or not task.cancelling()
    return isinstance(error, Exception)


def describe(error: BaseException) -> dict[str, Any]:
    """What the run row keeps of an error: type, message, the last frames.  No arguments, no locals."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    return {
        "type": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": _said(error),
        "where": [f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno} {f.name}" for f in frames],
    }


def _said(error: BaseException) -> str:
    """The message as jsonb can hold it: NUL and lone surrogates (a file's name) would be refused, and with
    them the whole outcome."""
    try:
        return str(clean_json(str(error)[:2000]))
    except Exception:  # its own __str__ fails; the type must do
        return ""


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, TimeoutError | ConnectionError | socket.gaierror | asyncio.CancelledError):
        return True
    if is_passing(error):  # of the node's own database, or a cut statement of the pen's
        return True
    if _status_of(error) in _TRANSIENT_STATUS:
        return True
    names = names_of(error)
    if names & _WRAPPERS and (inner := _wrapped(error)) is not None:
        return _is_transient(inner)
    if "urllib3.exceptions.ResponseError" in names:
        # All that is left of a response after urllib3's own retries ("too many 503 error responses").
        return _status_in(str(error)) in _TRANSIENT_STATUS
    return bool(names & _TRANSIENT)


def _status_of(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    own = "status" if "aiohttp.client_exceptions.ClientResponseError" in names_of(error) else "status_code"
    if isinstance(error, HTTPError):
        own = "code"
    for value in (getattr(error, own, None), getattr(response, "status_code", None)):
        if isinstance(value, int):
            return value
    smtp = getattr(error, "smtp_code", None)
    return 503 if isinstance(smtp, int) and 400 <= smtp < 500 else None


def _wrapped(error: BaseException) -> BaseException | None:
    found = getattr(error, "reason", None) or (error.args[0] if error.args else None)
    return found if isinstance(found, BaseException) else None


def _status_in(text: str) -> int | None:
    found = re.search(r"\b[1-5]\d\d\b", text)
    return int(found[0]) if found else None


def _retry_after(error: BaseException) -> timedelta | None:
    """What the other side asked for, of httpx, requests, urllib and all that keep their response."""
    response = getattr(error, "response", None)
    headers = getattr(response, "headers", None) or getattr(error, "headers", None)
    if not isinstance(headers, Mapping | Message):
        return None
    millis, value = headers.get("retry-after-ms"), headers.get("retry-after")
    if millis is not None and str(millis).strip().isdecimal():  # OpenAI's, beside the coarser one
        return min(timedelta(milliseconds=min(int(millis), 10**9)), _LONGEST_PAUSE)
    if value is None:
        return None
    if str(value).strip().isdecimal():
        return timedelta(seconds=min(int(value), _LONGEST_PAUSE.total_seconds()))
    try:
        pause = max(timedelta(0), parsedate_to_datetime(str(value)) - datetime.now(UTC))
        return min(pause, _LONGEST_PAUSE)
    except (TypeError, ValueError):
        return None  # an unreadable header asks for nothing
