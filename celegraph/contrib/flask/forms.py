"""That a form comes from our own page: a random token in the host's session and in every form.

In the session and not in a cookie of its own: it needs no second secret, ends with the sign-in, and a
neighbouring subdomain cannot write it.  A host that has Flask-WTF's `CSRFProtect` finds its token in our
forms, too; nothing has to be exempted.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping

from flask import current_app, request, session

from celegraph.contrib.web.problems import Forged
from celegraph.errors import ConfigError

FIELD = "celegraph_token"
_IN_SESSION = "celegraph.token"


def own_fields() -> Mapping[str, str]:
    """The hidden fields of a form of ours."""
    return {FIELD: _token(), **host_fields()}


def host_fields() -> Mapping[str, str]:
    """Flask-WTF's field, where the host has it; not imported, for it may not be installed."""
    give = current_app.jinja_env.globals.get("csrf_token")
    if "csrf" not in current_app.extensions or not callable(give):
        return {}
    return {str(current_app.config.get("WTF_CSRF_FIELD_NAME", "csrf_token")): str(give())}


def check_form() -> None:
    """Raise `Forged` unless the form carries this session's token."""
    held = session.get(_IN_SESSION)
    given = request.form.get(FIELD, "")
    if not isinstance(held, str) or not hmac.compare_digest(held.encode(), given.encode("utf-8", "replace")):
        raise Forged()


def _token() -> str:
    if not current_app.secret_key:
        raise ConfigError(
            "the pages' forms need Flask's session: set app.secret_key (or SECRET_KEY) to a random text that"
            " is the same in all your processes"
        )
    if not isinstance(session.get(_IN_SESSION), str):
        session[_IN_SESSION] = secrets.token_urlsafe(32)
    return str(session[_IN_SESSION])
