"""Names derived from facts: locks, effects, approvals, mails.

Every one is a pure function, frozen by golden vectors in the tests: a name that changes between
two processes or two releases pays twice.  Nothing here may depend on time, host or attempt.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping

from celegraph.errors import InvalidValue
from celegraph.ledger.canonical import canonical_json, simple_json
from celegraph.ledger.plain import Json, check_text

_KEY = re.compile(r"[a-z0-9-]+")
_LABEL = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def lock_key(run_id: str) -> int:
    """The run's advisory lock: 64 bits, so that unrelated runs do not wait for each other."""
    digest = hashlib.sha256(run_id.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def args_hash(args: Mapping[str, object]) -> str:
    """Equal for equal arguments; `InvalidValue` names the field that has no stable form."""
    return hash_of(canonical_json(args, path="args"))


def hash_of(body: bytes) -> str:
    """`args_hash` of arguments whose canonical form is at hand."""
    return hashlib.sha256(body).hexdigest()


def effect_key(run_id: str, step: str, tool: str, slot: str, args_hash: str) -> str:
    """The idempotency key a provider sees: the same on every re-run, another for another call.

    35 characters of `[a-z0-9-]`, as the strictest providers ask; nothing can be read from it.
    """
    return "cg-" + _digest("effect", run_id=run_id, step=step, tool=tool, slot=slot, args_hash=args_hash)


def approval_id(run_id: str, interrupt_id: str, n: int) -> str:
    """The n-th time this interrupt asked; the same on every re-run."""
    return "ap-" + _digest("approval", run_id=run_id, interrupt_id=interrupt_id, n=n)


def message_id(key: str, domain: str) -> str:
    """The RFC 5322 Message-ID of the mail this effect sends: a second copy can be recognised."""
    if not _KEY.fullmatch(key):
        raise InvalidValue("key", "is not an effect key: only a-z, 0-9 and hyphens")
    if not _DOMAIN.fullmatch(domain.lower()):
        raise InvalidValue("domain", "is not an ASCII domain name, like mail.example.com")
    return f"<{key}@{domain.lower()}>"


def _digest(kind: str, **parts: str | int) -> str:
    # JSON keeps the parts apart: joined by colons, "a:b","c" and "a","b:c" would be one.
    plain: dict[str, Json] = {
        name: check_text(part, f"key.{kind}.{name}") if isinstance(part, str) else part
        for name, part in parts.items()
    }
    digest = hashlib.sha256(simple_json({kind: plain})).digest()
    # 160 bits are 32 characters of base32 without padding.
    return base64.b32encode(digest[:20]).decode().lower()
