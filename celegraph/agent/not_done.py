"""Not done is not doubt: which exceptions from a provider prove that nothing happened there.

The first of the chained exceptions that proves anything decides.  An effect is taken to be one act,
and the last thing its function does: a connection refused after the act would be misread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from celegraph.agent import proofs
from celegraph.agent.declaration import Declaration, Verdict
from celegraph.agent.earlier_tries import may_have_sent
from celegraph.errors import EffectNotDone

logger = logging.getLogger("celegraph")

_RULES: tuple[Callable[[BaseException], Verdict | None], ...] = (
    proofs.never_sent,
    proofs.smtp,
    proofs.aws,
    proofs.database,
    proofs.http_status,
)


def is_not_done(decl: Declaration, error: BaseException) -> bool:
    """True when `error` proves that this call did nothing; everything else is doubt."""
    return (_authors_word(decl, error) or _judged(decl, error)) == "not_done"


def _authors_word(decl: Declaration, error: BaseException) -> Verdict | None:
    if decl.classify is None:
        return None
    try:
        verdict = decl.classify(error)
    except Exception as broken:
        # Nobody has answered, and the call may have happened.
        logger.error("classify= failed", extra={"tool": decl.tool, "error": type(broken).__name__})
        return "doubt"
    if verdict not in ("not_done", "doubt", None):
        logger.error("classify= must say not_done, doubt or None", extra={"tool": decl.tool})
        return "doubt"
    return verdict


def _judged(decl: Declaration, error: BaseException) -> Verdict | None:
    chain = tuple(proofs.chain(error))
    if any(isinstance(seen, (EffectNotDone, *decl.not_done)) for seen in chain):
        return "not_done"
    # A client that tries again or follows a redirect reports its last request only.
    if any(may_have_sent(seen) for seen in chain):
        return "doubt"
    return next((verdict for seen in chain for rule in _RULES if (verdict := rule(seen)) is not None), None)
