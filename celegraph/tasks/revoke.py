"""Revoking a run's message, as operators do in Flower, cancels the run."""

from __future__ import annotations

import logging
from typing import Any

from celegraph.errors import RunMoved, RunNotFound
from celegraph.ledger import runs
from celegraph.ledger.pool import ledger
from celegraph.tasks.installation import find
from celegraph.tasks.ring import RESUME, START

logger = logging.getLogger("celegraph")


def revoked(sender: Any, request: Any, expired: bool = False, **_: Any) -> None:
    """Celery's `task_revoked`, in the worker's main process, which throws the message away."""
    inst = find(sender.app)
    # An expired message is nobody's wish; and only ours name a run.
    if inst is None or expired or sender.name not in (START, RESUME):
        return
    run_id = (request.kwargs or {}).get("run_id") or request.id
    try:
        with ledger(inst.config) as conn:
            runs.cancel(conn, run_id, "its message was revoked")
    except (RunNotFound, RunMoved):
        return  # over already, or a foreign message that was never admitted
    logger.info("run cancelled by a revoke", extra={"run_id": run_id})
