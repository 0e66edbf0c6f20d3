"""The handle of a run: an AsyncResult that reads PostgreSQL, not the result backend."""

from __future__ import annotations

import time
from typing import Any

from celery.result import AsyncResult

from celegraph.errors import RunFailed, RunNotFound
from celegraph.ledger.plain import sought
from celegraph.ledger.pool import ledger
from celegraph.ledger.queries import load
from celegraph.ledger.runs import Run, get_run
from celegraph.ledger.states import TERMINAL
from celegraph.tasks.installation import Installation, installation

Q = load("runs")


class RunResult(AsyncResult):  # type: ignore[type-arg]
    """`id` is the run_id.  `status` is one of the run statuses, not one of Celery's."""

    def __init__(self, run_id: str, inst: Installation | None = None):
        self._inst = inst or installation()
        super().__init__(run_id, app=self._inst.app)

    def _outcome(self) -> dict[str, Any]:
        with ledger(self._inst.config) as conn:
            row = conn.execute(Q.outcome, {"run_id": sought(self.id)}).fetchone()
        if row is None:
            raise RunNotFound(self.id)
        return row

    @property
    def run(self) -> Run:
        """The whole run."""
        with ledger(self._inst.config) as conn:
            return get_run(conn, self.id)

    @property
    def status(self) -> str:  # type: ignore[override]
        """ready, running, waiting, paused, finished, failed, cancelled or quarantined."""
        return str(self._outcome()["status"])

    state = status  # type: ignore[assignment]

    @property
    def result(self) -> Any:
        """The output of a finished run, the recorded error of a failed one, else None."""
        row = self._outcome()
        return row["output"] if row["status"] == "finished" else row["error"]

    info = result

    def ready(self) -> bool:
        """The run has ended: finished, failed or cancelled."""
        return self.status in TERMINAL

    def successful(self) -> bool:
        """The run has finished."""
        return self.status == "finished"

    def failed(self) -> bool:
        """The run has failed."""
        return self.status == "failed"

    def get(  # type: ignore[override]
        self, timeout: float | None = None, interval: float = 0.1, **_: Any
    ) -> Any:
        """The output of the run, waiting for it by polling the database.

        Raises `RunFailed` when it failed or was cancelled, TimeoutError after `timeout` seconds.  A run
        that waits for a person is waited for: use a timeout, or ask for `status`.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            row = self._outcome()
            if row["status"] == "finished":
                return row["output"]
            if row["status"] in TERMINAL:
                raise RunFailed(self.id, row["status"], row["error"] or row["reason"])
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"run {self.id!r} is still {row['status']} ({row['reason'] or '-'})")
            time.sleep(interval)
            interval = min(interval * 1.5, 1.0)

    wait = get  # type: ignore[assignment]

    def revoke(self, *_: Any, **__: Any) -> None:
        """Cancel the run."""
        from celegraph.tasks.control import cancel_run

        cancel_run(self.id)

    def forget(self) -> None:
        """Nothing to forget: no result backend is used."""
