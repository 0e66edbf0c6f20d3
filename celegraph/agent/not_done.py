"""Not done is not doubt: which exceptions from a provider prove that nothing happened there."""

from __future__ import annotations

import socket
import ssl

from celegraph.agent.effect import Declaration
from celegraph.errors import EffectNotDone, InvalidValue

# By name: these clients are the host's choice, we must not import them to know their errors.
_NEVER_SENT = {
    "httpx.ConnectError",
    "httpx.ConnectTimeout",
    "httpx.PoolTimeout",
    "httpx.UnsupportedProtocol",
    "httpx.InvalidURL",
    "requests.exceptions.ConnectTimeout",
    "requests.exceptions.InvalidURL",
    "requests.exceptions.MissingSchema",
    "urllib3.exceptions.NewConnectionError",
    "urllib3.exceptions.ConnectTimeoutError",
    "smtplib.SMTPConnectError",
    "smtplib.SMTPHeloError",
    "smtplib.SMTPAuthenticationError",
    "smtplib.SMTPNotSupportedError",
    "smtplib.SMTPRecipientsRefused",
    "smtplib.SMTPSenderRefused",
}
# The provider has read the request and says no.  408, 409, 425 and 429 are left out: 409 may mean "the
# same key is at work", and the others leave open whether the first copy is.
_REFUSED_STATUS = frozenset({400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422})


def is_not_done(decl: Declaration, error: BaseException) -> bool:
    """True when `error` proves that the provider did nothing; everything else is doubt."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (EffectNotDone, *decl.not_done)) or _never_sent(seen) or _refused(seen):
            return True
        # requests and urllib3 wrap the socket's own error; only an explicit cause speaks for it.
        seen = seen.__cause__ if not isinstance(seen, InvalidValue) else None
    return False


def _never_sent(error: BaseException) -> bool:
    if isinstance(error, ConnectionRefusedError | socket.gaierror | ssl.SSLCertVerificationError):
        return True
    names = {f"{c.__module__}.{c.__qualname__}" for c in type(error).__mro__}
    return bool(names & _NEVER_SENT)


def _refused(error: BaseException) -> bool:
    response = getattr(error, "response", None)
    for status in (getattr(error, "status_code", None), getattr(response, "status_code", None)):
        if isinstance(status, int):
            return status in _REFUSED_STATUS
    smtp = getattr(error, "smtp_code", None)
    return isinstance(smtp, int) and smtp >= 500
