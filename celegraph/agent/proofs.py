"""What the errors of common clients prove, by client.  None: this rule knows nothing about the error.

Errors are known by name and shape, never by importing the client.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Iterator, Mapping
from traceback import walk_tb

from celegraph.agent.class_names import names_of
from celegraph.agent.declaration import Verdict
from celegraph.errors import InvalidValue

_NEVER_SENT = frozenset(
    {
        "httpx.ConnectError",
        "httpx.ConnectTimeout",
        "httpx.PoolTimeout",
        "httpx.ProxyError",  # the tunnel to the provider was not opened
        "httpx.UnsupportedProtocol",
        "httpx.InvalidURL",
        "requests.exceptions.ConnectTimeout",
        "requests.exceptions.ProxyError",
        "requests.exceptions.InvalidHeader",
        "requests.exceptions.InvalidSchema",
        "requests.exceptions.InvalidURL",
        "requests.exceptions.MissingSchema",
        "urllib3.exceptions.ConnectTimeoutError",
        "urllib3.exceptions.EmptyPoolError",
        "urllib3.exceptions.LocationValueError",
        "urllib3.exceptions.NewConnectionError",
        "urllib3.exceptions.ProxyError",
        "botocore.exceptions.NoCredentialsError",
        "botocore.exceptions.NoRegionError",
        "botocore.exceptions.ParamValidationError",
        "psycopg.errors.ConnectionTimeout",
        "psycopg_pool.PoolClosed",
        "psycopg_pool.PoolTimeout",
        "psycopg_pool.TooManyRequests",
    }
)
# The provider has read the request and says no.  429 is such a no: too many requests, this one is not
# served.  408 and 425 leave open what the server did, and 409 may mean that the same key is at work.
_REFUSED_STATUS = frozenset(
    {400, 401, 402, 403, 404, 405, 406, 407, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 426, 428, 429}
    | {431, 451}
)
# Steps of an SMTP conversation before the message itself goes out.
_BEFORE_DATA = frozenset({"connect", "ehlo", "helo", "starttls", "login", "auth", "mail", "rcpt"})
_AFTER_DATA = frozenset({"data", "quit", "__exit__"})
# AWS: a 4xx that tells of the same token or request still at work.
_AWS_BUSY = frozenset({"TransactionInProgressException", "RequestTimeout", "OperationAborted"})
# SQLSTATE classes after which PostgreSQL has undone the statement and its transaction: data, constraint,
# rollback (serialization failure, deadlock), syntax and access, resources, limits, locks.
_UNDONE_CLASSES = frozenset(
    {
        "0A",
        "21",
        "22",
        "23",
        "25",
        "26",
        "28",
        "2B",
        "34",
        "3B",
        "3D",
        "3F",
        "40",
        "42",
        "44",
        "53",
        "54",
        "55",
    }
    | {"P0"}
)
# statement_completion_unknown is of class 40; the others are of classes that are otherwise doubt.
_UNDONE_EXCEPT = frozenset({"40003"})
_UNDONE_TOO = frozenset({"08001", "08004", "57014"})


def never_sent(error: BaseException) -> Verdict | None:
    """The request did not leave: no name, no connection, no trusted certificate."""
    if isinstance(error, ConnectionRefusedError | socket.gaierror | ssl.SSLCertVerificationError):
        return "not_done"
    return "not_done" if names_of(error) & _NEVER_SENT else None


def http_status(error: BaseException) -> Verdict | None:
    """The provider's answer, on the error itself or on its `response`."""
    response = getattr(error, "response", None)
    candidates = [getattr(error, "status_code", None), getattr(response, "status_code", None)]
    if "urllib.error.HTTPError" in names_of(error):
        candidates.append(getattr(error, "code", None))
    for status in candidates:
        if isinstance(status, int):
            return "not_done" if status in _REFUSED_STATUS else "doubt"
    return None


def smtp(error: BaseException) -> Verdict | None:
    """A refusal before or instead of the message, or a conversation that never came to it.

    A 4xx is a refusal too (RFC 5321, 4.2.1: the action did not occur), 421 in answer to the message
    apart, which a server also says when it goes down.
    """
    match error:
        case smtplib.SMTPSenderRefused() | smtplib.SMTPRecipientsRefused() | smtplib.SMTPNotSupportedError():
            return "not_done"
        case smtplib.SMTPConnectError() | smtplib.SMTPHeloError() | smtplib.SMTPAuthenticationError():
            return "not_done"
        case smtplib.SMTPDataError():
            return "doubt" if error.smtp_code == 421 else "not_done"
        case OSError():  # smtplib's other errors are OSErrors as well
            return _how_far(error)
    return None


def _how_far(error: BaseException) -> Verdict | None:
    """smtplib tells of a lost connection, but not where: its frames in the traceback do."""
    frames = walk_tb(error.__traceback__)
    steps = {f.f_code.co_name for f, _ in frames if f.f_globals.get("__name__") == "smtplib"}
    if not steps:
        return None
    return "not_done" if steps & _BEFORE_DATA and not steps & _AFTER_DATA else "doubt"


def aws(error: BaseException) -> Verdict | None:
    """An answer of AWS, as botocore's ClientError carries it."""
    response = getattr(error, "response", None)
    if not isinstance(response, Mapping) or not isinstance(response.get("ResponseMetadata"), Mapping):
        return None
    meta, code = response["ResponseMetadata"], (response.get("Error") or {}).get("Code")
    # botocore tries again by itself; a "condition failed" may then be about the first try's success.
    if meta.get("RetryAttempts", 0) or code in _AWS_BUSY:
        return "doubt"
    return "not_done" if meta.get("HTTPStatusCode") in _REFUSED_STATUS else "doubt"


def database(error: BaseException) -> Verdict | None:
    """A PostgreSQL of the effect's own.  Lost while it committed is doubt; lost before it connected is
    not done, and a server's error has undone the transaction."""
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if isinstance(state, str) and len(state) == 5:
        undone = state[:2] in _UNDONE_CLASSES and state not in _UNDONE_EXCEPT
        return "not_done" if undone or state in _UNDONE_TOO else "doubt"
    if "psycopg.OperationalError" in names_of(error):
        # psycopg sets `pgconn` when the attempt to connect failed, and only then.
        return "not_done" if getattr(error, "pgconn", None) is not None else "doubt"
    return None


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it explicitly stands for, outermost first."""
    seen: BaseException | None = error
    met: set[int] = set()
    while seen is not None and id(seen) not in met:
        met.add(id(seen))
        yield seen
        # The value that could not be kept says nothing about the provider.
        seen = None if isinstance(seen, InvalidValue) else seen.__cause__ or _wrapped(seen)


def _wrapped(error: BaseException) -> BaseException | None:
    """requests, urllib3 and urllib carry the first error as an attribute or argument."""
    if type(error).__module__.partition(".")[0] not in ("requests", "urllib3", "urllib"):
        return None
    candidates = (getattr(error, "reason", None), *error.args)
    return next((c for c in candidates if isinstance(c, BaseException)), None)
