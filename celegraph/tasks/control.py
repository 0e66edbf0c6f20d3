"""What people do to whole runs, and how they look at them."""

from __future__ import annotations

from celegraph.ledger import effects, outbox, runs
from celegraph.ledger.approvals import Approval
from celegraph.ledger.approvals import get_approval as _get_approval
from celegraph.ledger.approvals import list_approvals as _list_approvals
from celegraph.ledger.effect_row import Effect
from celegraph.ledger.pool import ledger
from celegraph.ledger.runs import Event, Run
from celegraph.tasks.installation import installation
from celegraph.tasks.ring import ring_after_commit
from celegraph.tasks.transactions import writing


def get_run(run_id: str) -> Run:
    """The run, or `RunNotFound`."""
    with ledger(installation().config) as conn:
        return runs.get_run(conn, run_id)


def list_runs(*, status: str | None = None, agent: str | None = None, limit: int = 100) -> list[Run]:
    """The newest runs first."""
    with ledger(installation().config) as conn:
        return runs.list_runs(conn, status=status, agent=agent, limit=limit)


def trace_run(run_id: str, *, after: int = 0) -> list[Event]:
    """Everything that happened to the run, in order; `RunNotFound`."""
    with ledger(installation().config) as conn:
        runs.get_run(conn, run_id)
        return runs.events(conn, run_id, after=after)


def get_approval(approval_id: str) -> Approval:
    """The question, or `ApprovalNotFound`."""
    with ledger(installation().config) as conn:
        return _get_approval(conn, approval_id)


def list_approvals(
    *, status: str | None = "open", run_id: str | None = None, limit: int = 100
) -> list[Approval]:
    """Questions of one status (None: all), oldest first."""
    with ledger(installation().config) as conn:
        return _list_approvals(conn, status=status, run_id=run_id, limit=limit)


def get_effect(key: str) -> Effect:
    """The effect, or `EffectNotFound`; `value` is its result.  In a node it reads what an enqueued effect
    has come to; wrap it in `recorded` where a re-run must see the same."""
    with ledger(installation().config) as conn:
        return effects.get_effect(conn, key)


def release_effect(key: str, *, by: str, connection: object = None) -> None:
    """A dead letter of the outbox is tried again.  Raises EffectNotFound if there is no such letter."""
    with writing(installation().config, connection) as (conn, _):
        outbox.release_dead(conn, key, by)


# Each of these joins the caller's transaction: that of `connection`, or Django's open one.  Whoever is to
# be rung is rung after its commit.


def cancel_run(run_id: str, *, reason: str = "cancelled on request", connection: object = None) -> str:
    """Any unfinished status -> cancelled.  Returns "cancelled", or "running": the owner stops at its
    next step.  An effect in doubt stays a question to be answered.  Raises RunNotFound, RunMoved."""
    with writing(installation().config, connection) as (conn, _):
        return runs.cancel(conn, run_id, reason)


def pause_run(run_id: str, *, reason: str = "paused", connection: object = None) -> str:
    """Hold an unfinished run until `resume_run`; what people decide meanwhile is kept.  Returns "paused",
    or "running": the owner stops at its next step.  Raises RunNotFound, RunMoved."""
    with writing(installation().config, connection) as (conn, _):
        return runs.pause(conn, run_id, reason)


def resume_run(run_id: str, *, by: str | None = None, connection: object = None) -> str:
    """paused -> ready, or take back a pause that has not happened yet.  Returns the status: "ready", or
    "running" when it never stopped.  Raises RunNotFound, RunMoved."""
    return _make_ready(run_id, "resume", by, connection)


def retry_run(run_id: str, *, by: str | None = None, connection: object = None) -> None:
    """failed -> ready; goes on from where it stands, recorded effects are not repeated."""
    _make_ready(run_id, "retry", by, connection)


def release_run(run_id: str, *, by: str | None = None, connection: object = None) -> None:
    """quarantined -> ready, with its crash count forgiven."""
    _make_ready(run_id, "release", by, connection)


def _make_ready(run_id: str, verb: str, by: str | None, connection: object) -> str:
    inst = installation()
    with writing(inst.config, connection) as (conn, after_commit):
        status = runs.make_ready(conn, run_id, verb, by)
        if status == "ready":
            after_commit(lambda: ring_after_commit(inst, run_id, f"asked to {verb}"))
    return status
