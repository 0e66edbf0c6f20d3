"""Outcomes become rows here and nowhere else; then the lock goes, then the doorbell rings."""

from __future__ import annotations

import logging

from celegraph.agent.attempt import Attempt
from celegraph.agent.failures import describe
from celegraph.errors import Fenced
from celegraph.ledger import leases
from celegraph.ledger.db_errors import is_bad_value
from celegraph.ledger.leases import Settleable, Settled
from celegraph.ledger.outcomes import Abandoned, Failed, Outcome

logger = logging.getLogger("celegraph")


async def settle(attempt: Attempt, outcome: Outcome, fingerprint: str | None) -> Settled | None:
    """Write the outcome and end the attempt's right to write.  None: there was nothing we may write."""
    if isinstance(outcome, Abandoned):
        logger.warning("run abandoned: %s", outcome.reason, extra={"run_id": attempt.run_id})
        return None
    # The answers this attempt knew are taken in, delivered or not; later ones make the run due again.
    seen = [a.approval_id for a in attempt.approvals if a.status != "open"]

    async def write(outcome: Settleable) -> Settled:
        return await leases.settle(
            attempt.pen, attempt.run_id, attempt.epoch, outcome, seen=seen, fingerprint=fingerprint
        )

    try:
        try:
            settled = await write(outcome)
        except Exception as error:
            if not is_bad_value(error):
                raise
            # Too large for any column: it would be refused again after every repetition.
            settled = await write(Failed("its outcome cannot be stored", describe(error)))
    except Fenced:
        logger.warning("run was taken over", extra={"run_id": attempt.run_id, "epoch": attempt.epoch})
        return None
    logger.info("run %s", settled.status, extra={"run_id": attempt.run_id, "epoch": attempt.epoch})
    return settled
