"""How ids and places in a list travel in URLs, and back; what is no such address is a `NotFound`.

A run id may hold a slash, a space, `..` or a question mark, which servers, proxies and browsers rewrite.
Plain ids stand in the URL as they are, all others as `~` and base64.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from datetime import datetime

from celegraph.contrib.web.problems import BadRequest, NotFound
from celegraph.errors import InvalidRunId
from celegraph.ledger.listing import Key
from celegraph.ledger.values import check_run_id

# Neither "." nor "..", nothing that ends like another route.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:@.-]*(?<!\.json)(?<!\.txt)", re.ASCII)
# Approval ids and effect keys are digests with a prefix.
_DIGEST = re.compile(r"[A-Za-z0-9-]{1,100}", re.ASCII)


def segment(run_id: str) -> str:
    """The run id as one segment of a path."""
    if _PLAIN.fullmatch(run_id):
        return run_id
    return "~" + base64.urlsafe_b64encode(run_id.encode()).decode().rstrip("=")


def run_id_of(given: str) -> str:
    """The run id that a segment stands for."""
    try:
        return check_run_id(_unpacked(given[1:]) if given.startswith("~") else given)
    except (InvalidRunId, ValueError):
        raise NotFound("run") from None


def approval_id_of(given: str) -> str:
    """An approval id, or something that surely is none."""
    if not _DIGEST.fullmatch(given):
        raise NotFound("question")
    return given


def effect_key_of(given: str) -> str:
    """An effect key, or something that surely is none."""
    if not _DIGEST.fullmatch(given):
        raise NotFound("effect")
    return given


def cursor(key: Key) -> str:
    """A place in a list, for a link to the next page."""
    at, name = key
    return base64.urlsafe_b64encode(json.dumps([at.isoformat(), name]).encode()).decode().rstrip("=")


def place(given: str | None) -> Key | None:
    """The place a link leads to; None for the beginning."""
    if not given:
        return None
    try:
        at, name = json.loads(_unpacked(given))
        when = datetime.fromisoformat(at)
        if when.tzinfo is None or not isinstance(name, str) or "\0" in name:
            raise ValueError(given)
        name.encode()
    except (ValueError, TypeError, RecursionError):
        raise BadRequest(
            "This link to a page of the list is damaged. Start again at the first page."
        ) from None
    return when, name


def _unpacked(text: str) -> str:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(text) from error
    return raw.decode()
