"""Drives a run in the test's own process: the code a worker runs, without worker, broker and waiting."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from celery import Celery

from celegraph.agent.declaration import NOTICE
from celegraph.agent.spec import Agent
from celegraph.config import parse_duration
from celegraph.ledger import approvals, runs
from celegraph.ledger.approvals import Approval
from celegraph.ledger.canonical import decode_result
from celegraph.ledger.connect import Conn
from celegraph.ledger.effects import effects_of
from celegraph.ledger.for_tests import pass_time
from celegraph.ledger.pool import ledger
from celegraph.ledger.runs import Event, Run
from celegraph.ledger.sweep import wake
from celegraph.tasks.decide import decide
from celegraph.tasks.eager import drive_inline
from celegraph.tasks.install import fit
from celegraph.tasks.installation import Installation, using
from celegraph.tasks.start import check_request
from celegraph.testing.database import Ledger

# "approve", "reject", "expire" | ("answer", value) | {"verb": "edit", "args": {...}, "by": ...}
Plain = str | tuple[str, Any] | Mapping[str, Any]
Decision = Plain | Callable[[Approval], Plain]

_NAME = "agent"
# A graph that sleeps and asks more often than this in one test is caught in a circle.
_MOST_ROUNDS = 1000


@dataclass(frozen=True)
class Driver:
    """The `drive` fixture."""

    ledger: Ledger

    def __call__(
        self,
        agent: object,
        input: Any,
        decisions: Iterable[Decision] = (),
        *,
        run_id: str | None = None,
        by: str = "test",
        sleeps: bool = True,
        read_only: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> Driven:
        """Start a run of `agent` and drive it until it ends, or waits and no decision is left.

        `agent`: a graph, its import path, or an `Agent`.  Each decision answers the oldest open question;
        one that nobody asked for is an AssertionError.  Sleeps (back-off, a doubt's horizon) pass at
        once; `sleeps=False` stops at the first.  `settings` are options as in `app.conf.celegraph`.
        """
        inst = _installation(self.ledger, agent, settings or {})
        admission = check_request(
            inst, _NAME, input, run_id=run_id or f"test-{uuid.uuid4()}", read_only=read_only
        )
        with ledger(inst.config) as conn:
            runs.admit(conn, admission)
        driven = Driven(inst, admission.run_id, by=by, sleeps=sleeps)
        return driven.resume(decisions)


def _installation(ledger: Ledger, agent: object, settings: Mapping[str, object]) -> Installation:
    app = Celery("celegraph-drive", broker="memory://", set_as_current=False)
    app.conf.update(
        task_always_eager=True,
        celegraph={"database_url": ledger.database_url, "schema": ledger.schema, **settings},
    )
    return fit(app, {_NAME: agent if isinstance(agent, Agent) else Agent(graph=agent)})


@dataclass(frozen=True)
class Act:
    """One effect of the run: what was asked of which provider, and what came of it."""

    tool: str
    args: Any
    status: str
    result: Any
    key: str
    attempts: int
    provider_ref: str | None
    error: Any


class Driven:
    """A run under test.  Every attribute is read from the database when it is asked for."""

    def __init__(self, inst: Installation, run_id: str, *, by: str = "test", sleeps: bool = True):
        self.installation = inst
        self.run_id = run_id
        self._by = by
        self._sleeps = sleeps

    def __repr__(self) -> str:
        run = self.run
        return f"<Driven {self.run_id}: {run.status} ({run.reason or '-'})>"

    # -- what is true now --------------------------------------------------------------------------

    @property
    def run(self) -> Run:
        """The whole run."""
        with ledger(self.installation.config) as conn:
            return runs.get_run(conn, self.run_id)

    @property
    def status(self) -> str:
        """ready, waiting, finished, failed, ..."""
        return self.run.status

    @property
    def output(self) -> Any:
        """The final state of a finished run, else None."""
        return self.run.output

    @property
    def events(self) -> list[Event]:
        """What happened, in order."""
        with ledger(self.installation.config) as conn:
            return runs.events(conn, self.run_id)

    @property
    def approvals(self) -> list[Approval]:
        """Every question the run has asked, oldest first."""
        with ledger(self.installation.config) as conn:
            return approvals.list_approvals(conn, status=None, run_id=self.run_id, limit=10_000)

    @property
    def effects(self) -> list[Act]:
        """Every effect of the run, in the order they were reserved; results as the agent got them."""
        return [act for act in self._acts() if not act.tool.startswith(NOTICE)]

    @property
    def notices(self) -> list[Act]:
        """What people were to be told about its questions; nothing is sent here."""
        return [act for act in self._acts() if act.tool.startswith(NOTICE)]

    def _acts(self) -> list[Act]:
        with ledger(self.installation.config) as conn:
            return [
                Act(
                    tool=row.tool,
                    args=decode_result(row.args),
                    status=row.status,
                    result=decode_result(row.result) if row.done else None,
                    key=row.idempotency_key,
                    attempts=row.attempts,
                    provider_ref=row.provider_ref,
                    error=row.error,
                )
                for row in effects_of(conn, self.run_id)
            ]

    # -- what moves it -----------------------------------------------------------------------------

    def resume(self, decisions: Iterable[Decision] = ()) -> Driven:
        """Drive on, with more decisions; returns itself."""
        left = list(decisions)
        with using(self.installation):
            for _ in range(_MOST_ROUNDS):
                self._advance()
                question = self._oldest_open()
                if question is None or not left:
                    break
                self._decide(question, left.pop(0))
            else:
                raise AssertionError(f"{self!r} asks and sleeps in a circle")
        if left:
            raise AssertionError(f"nobody asked for {left!r}: {self!r}")
        return self

    def pass_time(self, by: timedelta | str | float) -> Driven:
        """Let `by` ("2h") pass for this run, at once; `resume()` then finds what has come due."""
        with ledger(self.installation.config) as conn:
            pass_time(conn, self.run_id, parse_duration(by))
        return self

    def _advance(self) -> None:
        for _ in range(_MOST_ROUNDS):
            self._come_due()
            drive_inline(self.installation, self.run_id)
            run = self.run
            if run.status != "ready" or run.wake_at is None or run.now is None or not self._sleeps:
                return
            self.pass_time(max(timedelta(0), run.wake_at - run.now))
        raise AssertionError(f"{self!r} sleeps in a circle")

    def _come_due(self) -> None:
        """What sweep and beat would have done for this run by now.

        Others of the session are not woken: they have graphs of their own.
        """
        with ledger(self.installation.config) as conn:
            for question in approvals.move_due(conn):
                if question.closed and question.silence == "cancel":
                    runs.cancel(conn, question.run_id, f"approval {question.approval_id} expired")
            wake(conn, self.run_id)

    def _oldest_open(self) -> Approval | None:
        return next((a for a in self.approvals if a.status == "open"), None)

    def _decide(self, question: Approval, decision: Decision) -> None:
        plain = decision(question) if callable(decision) else decision
        with ledger(self.installation.config) as conn:
            if plain == "expire":
                self._expire(conn, question)
            else:
                # On a connection of ours: inside a host's own transaction (Django's TestCase) the
                # decision would wait for a commit that never comes.
                decide(question.approval_id, connection=conn, **self._arguments(plain))

    def _expire(self, conn: Conn, question: Approval) -> None:
        asked = approvals.get_approval(conn, question.approval_id)
        if asked.deadline_at is None or asked.now is None:
            raise AssertionError(f"approval {asked.approval_id} has no deadline and cannot expire")
        if asked.silence is None:
            raise AssertionError(
                f"approval {asked.approval_id} does not expire: silence answers nothing here"
            )
        pass_time(conn, self.run_id, max(timedelta(0), asked.deadline_at - asked.now))

    def _arguments(self, plain: Plain) -> dict[str, Any]:
        if isinstance(plain, str):
            return {"verb": plain, "by": self._by}
        if isinstance(plain, tuple):
            verb, value = plain
            return {"verb": verb, "args" if verb == "edit" else "value": value, "by": self._by}
        return {"by": self._by, **plain}
