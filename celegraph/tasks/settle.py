"""Outcomes become rows here and nowhere else; then the lock goes, then the doorbell rings."""

from __future__ import annotations

import logging

from celegraph.agent.attempt import Attempt
from celegraph.errors import Fenced
from celegraph.ledger import leases
from celegraph.ledger.leases import Settled
from celegraph.ledger.outcomes import Abandoned, Outcome

logger = logging.getLogger("celegraph")


async def settle(attempt: Attempt, outcome: Outcome, fingerprint: str | None) -> Settled | None:
    """Write the outcome and end the attempt's right to write.  None: there was nothing we may write."""
    if isinstance(outcome, Abandoned):
        logger.warning("run abandoned: %s", outcome.reason, extra={"run_id": attempt.run_id})
        return None
    # The answers this attempt knew are taken in, delivered or not; later ones make the run due again.
    seen = [a.approval_id for a in attempt.approvals if a.status != "open"]
    try:
        settled = await leases.settle(
            attempt.pen, attempt.run_id, attempt.epoch, outcome, seen=seen, fingerprint=fingerprint
        )
    except Fenced:
        logger.warning("run was taken over", extra={"run_id": attempt.run_id, "epoch": attempt.epoch})
        return None
    logger.info("run %s", settled.status, extra={"run_id": attempt.run_id, "epoch": attempt.epoch})
    return settled
