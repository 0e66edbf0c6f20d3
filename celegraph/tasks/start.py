"""start_run: admission in the caller's process, then one doorbell."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from celegraph.config import parse_duration
from celegraph.errors import ConfigError, InvalidValue, TaskOptionRefused
from celegraph.ledger import runs
from celegraph.ledger.borrow import borrowed
from celegraph.ledger.pool import ledger
from celegraph.ledger.runs import Admission
from celegraph.ledger.values import check_json, check_note, check_run_id, check_span, check_stored_json
from celegraph.tasks import transactions
from celegraph.tasks.installation import Installation, installation
from celegraph.tasks.result import RunResult
from celegraph.tasks.ring import START, publish

logger = logging.getLogger("celegraph")

_REFUSED = {
    "expires": "a run does not expire in the queue; give it a deadline= instead",
    "link": "a run's end is not a task's end; let the graph's last node do it, or poll the result",
    "link_error": "a run's end is not a task's end; let the graph do it, or poll the result",
    "chain": "runs cannot be links of a chain: a waiting run would end the link; use one graph",
    "chord": "runs cannot be part of a chord: a waiting run would count as done; use one graph",
    "group_id": "runs cannot be part of a group: a waiting run would count as done; start them singly",
    "producer": "the doorbell has a connection of its own, with time limits",
    "connection": "use start_run.admit(..., connection=) to join a transaction",
}
# Harmless here because celegraph decides them itself.
_IGNORED = {
    "ignore_result",
    "argsrepr",
    "kwargsrepr",
    "serializer",
    "root_id",
    "parent_id",
    "chain",
}


def check_request(
    inst: Installation,
    agent: str,
    input: Any,
    run_id: str | None = None,
    *,
    deadline: timedelta | str | None = None,
    delay: timedelta | None = None,
    read_only: bool = False,
    tags: Mapping[str, str] | None = None,
    trace_parent: str | None = None,
) -> Admission:
    """Refuse bad input before anything is written or enqueued; each error says what to do."""
    spec = inst.agent(agent)
    checked_id = check_run_id(run_id if run_id is not None else str(uuid.uuid4()))
    checked_input = check_stored_json(input, path="input")
    limit = parse_duration(deadline) if deadline is not None else spec.deadline_after_start()
    return Admission(
        run_id=checked_id,
        agent=agent,
        input=checked_input,
        max_crashes=spec.max_crashes or inst.config.max_crashes,
        delay=check_span(delay, path="countdown"),
        deadline=check_span(limit, path="deadline"),
        read_only=read_only,
        tags=_checked_tags(tags),
        trace_parent=check_note(trace_parent, path="trace_parent"),
    )


def _checked_tags(tags: object) -> dict[str, Any]:
    checked = check_json(tags if tags is not None else {}, path="tags")
    if not isinstance(checked, dict):
        raise InvalidValue("tags", f"is a {type(tags).__name__}; pass a dict")
    return checked


def start(inst: Installation, admission: Admission, options: Mapping[str, Any]) -> RunResult:
    """Admit in a transaction of our own, or in the framework's open one; then ring.

    A dead broker does not fail the call: the row is the promise, the sweep rings.
    """
    result = RunResult(admission.run_id, inst)
    with transactions.writing(inst.config) as (conn, after_commit):
        runs.admit(conn, admission)
        after_commit(lambda: _ring_first(inst, admission, options))
    return result


def _ring_first(inst: Installation, admission: Admission, options: Mapping[str, Any]) -> None:
    if inst.app.conf.task_always_eager:
        from celegraph.tasks.eager import drive_inline

        drive_inline(inst, admission.run_id)
        return
    if admission.delay is not None:
        return  # the sweep rings at wake_at; no message ever waits in the broker
    # Only this first message carries the run_id as its task id: a revoked id is refused for hours.
    if publish(
        inst,
        inst.app.tasks[START],
        admission.run_id,
        admission.agent,
        "started",
        task_id=admission.run_id,
        **options,
    ):
        _note_rung(inst, admission.run_id)


def _note_rung(inst: Installation, run_id: str) -> None:
    try:
        with ledger(inst.config) as conn:
            runs.rung(conn, [run_id])
    except Exception as error:
        # The message is out; the sweep will ring a second time, which is harmless.
        logger.warning("ring not noted", extra={"run_id": run_id, "error": type(error).__name__})


def admit(inst: Installation, admission: Admission, connection: object) -> RunResult:
    """Write the run with the host's open connection; it exists when the host commits.  Rings nobody."""
    if connection is None:
        raise ConfigError("start_run.admit needs connection=: the open connection whose transaction it joins")
    with borrowed(connection, inst.config.schema_name) as conn:
        runs.admit(conn, admission)
    return RunResult(admission.run_id, inst)


class StartRun:
    """Mixed into the host's own Task class: `start_run.delay(agent, input, run_id=None, ...)`.

    Returns a `RunResult` whose id is the run_id.  Same run_id and input: the same run.  Raises before
    anything is written: UnknownAgent, InvalidValue, InvalidRunId, TaskOptionRefused; RunConflict.
    """

    # Celery's, which this is mixed into; a host's Task class may have a __call__ of its own.
    request: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused in the caller's process; a worker calls it too, and goes on to `run`."""
        if not self.request.called_directly:
            return super().__call__(*args, **kwargs)  # type: ignore[misc]
        raise TypeError(
            "start_run is not called directly: start_run.delay(agent, input, run_id=...) admits the run and"
            " rings a worker; in tests use the drive fixture"
        )

    def delay(self, *args: Any, **kwargs: Any) -> RunResult:
        """Admit the run and ring a worker.  Inside a Django transaction it joins it and rings on commit."""
        return self.apply_async(args, kwargs)

    # The same call: delay() always waits for the commit.
    delay_on_commit = delay

    def apply_async(
        self,
        args: tuple[Any, ...] | list[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        task_id: str | None = None,
        countdown: float | None = None,
        eta: datetime | None = None,
        **options: Any,
    ) -> RunResult:
        """As Celery's; countdown and eta become `wake_at` in the database, task_id the run_id."""
        inst = installation()
        _refuse_options(options)
        named = dict(kwargs or {})
        if task_id is not None and named.setdefault("run_id", task_id) != task_id:
            raise TaskOptionRefused("task_id and run_id differ; the run_id is the task id, give one of them")
        try:
            admission = check_request(inst, *(args or ()), delay=_delay(countdown, eta), **named)
        except TypeError as error:
            if isinstance(error, TaskOptionRefused) or "check_request" not in str(error):
                raise
            raise TypeError(str(error).replace("check_request", "start_run.delay")) from None
        kept = {k: v for k, v in options.items() if k not in _IGNORED and v is not None and k != "queue"}
        return start(inst, admission, kept)

    apply_async_on_commit = apply_async

    def admit(self, *args: Any, connection: object, **kwargs: Any) -> RunResult:
        """Write the run with the host's connection (psycopg 3 or SQLAlchemy); it rings nobody.

        The run exists when the host commits, and the sweep rings it then.
        """
        inst = installation()
        return admit(inst, check_request(inst, *args, **kwargs), connection)


def _refuse_options(options: Mapping[str, Any]) -> None:
    for name, reason in _REFUSED.items():
        if options.get(name):
            raise TaskOptionRefused(f"start_run does not take {name}=: {reason}")


def _delay(countdown: float | None, eta: datetime | None) -> timedelta | None:
    if countdown is not None:
        try:
            return timedelta(seconds=float(countdown))
        except (TypeError, ValueError, OverflowError):
            raise TaskOptionRefused(f"countdown= is a number of seconds, not {countdown!r}") from None
    if eta is None:
        return None
    if not isinstance(eta, datetime) or eta.tzinfo is None:
        raise TaskOptionRefused("eta= must be a datetime with a time zone; countdown= needs none")
    # The one place where the caller's clock meets the database's: an eta is the caller's own instant.
    return max(timedelta(0), eta - datetime.now(UTC))
