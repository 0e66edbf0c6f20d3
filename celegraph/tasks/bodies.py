"""What a worker does with our messages, and how an attempt's end looks to Celery and Flower."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from celery.exceptions import Retry

from celegraph.errors import DoorbellFailed, RunFailed
from celegraph.ledger.db_errors import in_log
from celegraph.tasks.advance import Advanced, advance
from celegraph.tasks.installation import Installation
from celegraph.tasks.ring import ring
from celegraph.tasks.softlimit import draining_on_soft_limit
from celegraph.tasks.start import check_request, start

logger = logging.getLogger("celegraph")


def run_doorbell(inst: Installation, run_id: str) -> str:
    """Advance the run; the task succeeds only when the run has finished.

    A run that waits, sleeps or drains ends its message as task-retried: a success would stand in Flower
    for ever.  Nothing is re-published here that has not first been made due in PostgreSQL.
    """
    try:
        with draining_on_soft_limit():
            advanced = advance(inst, run_id)
    except Exception as error:
        # What PostgreSQL says may quote a row, and this error goes to Celery's log, events and Flower.
        logger.debug("doorbell failed", extra={"run_id": run_id}, exc_info=True)
        raise DoorbellFailed(run_id, in_log(error)) from None
    if advanced.ring:
        ring(inst, [run_id], "due again")
    return _report(run_id, advanced)


def _report(run_id: str, advanced: Advanced) -> str:
    if advanced.status in ("finished", "cancelled"):
        return advanced.status
    if advanced.status == "failed":
        raise RunFailed(run_id, "failed", "see `celegraph explain`")
    if advanced.status is None:
        return "unknown run"  # a doorbell for a run whose admission was rolled back: nothing to do
    _not_over(advanced.status)


class RunNotOver(Exception):
    """What Flower shows of an attempt after which its run goes on."""


def _not_over(status: str) -> NoReturn:
    told = f"run is {status}"
    # Celery's log shows the message, its events only the cause.
    raise Retry(told, exc=RunNotOver(told))


def start_run_body(inst: Installation, args: Sequence[Any], kwargs: Mapping[str, Any], task_id: str) -> str:
    """The first message: normally only a run_id.

    A foreign producer (send_task, or a beat that does not import us) sends the whole request; then
    the worker admits it, under the message's own id, so a redelivery is the same run.
    """
    request = dict(zip(("agent", "input", "run_id"), args, strict=False)) | dict(kwargs)
    if "agent" not in request:
        return run_doorbell(inst, request["run_id"])
    run_id = request.pop("run_id", None) or task_id
    start(inst, check_request(inst, run_id=run_id, **request), {})
    return "admitted"
