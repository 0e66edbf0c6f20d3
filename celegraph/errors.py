"""Every error celegraph raises on purpose, named for what the reader does next.

Facts travel as attributes, so that callers need not read messages.  This module imports nothing
of celegraph: all layers may raise from it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any


class CelegraphError(Exception):
    """Base of all errors below."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Their facts are not their `args`, and an error that pickle cannot make again reaches Celery's logs
        # and Flower as its base class.
        return _made_again, (type(self), self.args, self.__dict__)


def _made_again(kind: type[CelegraphError], args: tuple[Any, ...], facts: dict[str, Any]) -> CelegraphError:
    error = kind.__new__(kind, *args)
    error.__dict__ |= facts
    return error


# -- the caller's input or set-up: nothing was written, nothing was enqueued -----------------------


class ConfigError(CelegraphError):
    """The configuration cannot work.  The message names the key and the remedy."""


class NotInstalled(CelegraphError):
    """`celegraph.install(app, agents={...})` has not been called for the current Celery app."""


class UnknownAgent(CelegraphError):
    """No agent of this name is installed."""

    def __init__(self, agent: str, known: list[str], hint: str | None = None):
        meant = f", did you mean {hint!r}?" if hint else ""
        listed = ", ".join(sorted(known)) or "none"
        super().__init__(f"unknown agent {agent!r}{meant} (installed: {listed})")
        self.agent = agent
        self.known = known


class AgentUnusable(CelegraphError):
    """An agent's import path or graph cannot be run durably; the message says why."""


class InvalidRunId(CelegraphError, ValueError):
    """A run_id is 1 to 200 printable characters."""


class InvalidValue(CelegraphError, ValueError):
    """A value cannot be stored or made stable; `path` names the field."""

    def __init__(self, path: str, problem: str):
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class ValueTooLarge(InvalidValue):
    """Arguments or a result exceed `max_value_bytes`; store the body elsewhere, pass a reference."""

    def __init__(self, path: str, size: int, limit: int):
        super().__init__(
            path,
            f"{size} bytes of canonical JSON, the limit is {limit} (max_value_bytes);"
            " store the body elsewhere and pass a reference",
        )
        self.size = size
        self.limit = limit


class RunConflict(CelegraphError):
    """This run_id was already admitted with another agent or other input."""

    def __init__(self, run_id: str, what: str):
        super().__init__(
            f"run {run_id!r} already exists with another {what};"
            " use a new run_id for a new run, or the same input to get the first run back"
        )
        self.run_id = run_id
        self.what = what


class TaskOptionRefused(CelegraphError, TypeError):
    """A Celery option that would break a run's promise; the message says what to use instead."""


class PoolerRefused(ConfigError):
    """The database URL points at a transaction pooler, where session locks protect nothing."""


class SchemaMissing(ConfigError):
    """The tables are not there: run `celegraph migrate`."""


class SchemaOutOfDate(ConfigError):
    """The tables are older than this code: run `celegraph migrate`."""


class SchemaTooNew(ConfigError):
    """The tables are newer than this code: upgrade celegraph here."""


class BrokerUnsupported(ConfigError):
    """The broker or pool cannot carry runs; the message names the remedy."""


class BrokerUnreachable(ConfigError):
    """The broker did not answer; start it or correct the URL.  Runs are safe meanwhile."""


# -- the state of things: somebody else moved first, or there is no such row -----------------------


class LedgerError(CelegraphError):
    """The ledger's answer to a request that no longer fits."""


class RunNotFound(LedgerError, LookupError):
    """No run of this id."""

    def __init__(self, run_id: str):
        super().__init__(f"no run {run_id!r}; `celegraph runs` lists them")
        self.run_id = run_id


class CursorInvalid(CelegraphError, ValueError):
    """`after=` is not a cursor that this run's stream has given; start without one."""

    def __init__(self, run_id: str, what: str):
        super().__init__(f"stream of run {run_id!r}: after= {what}; pass the cursor of an item, or nothing")
        self.run_id = run_id


class RunMoved(LedgerError):
    """The run is not in the state this change starts from; read it again."""

    def __init__(self, run_id: str, verb: str, status: str | None = None):
        now = f": it is {status}" if status else ""
        super().__init__(f"cannot {verb} run {run_id!r}{now}")
        self.run_id = run_id
        self.verb = verb
        self.status = status


class Fenced(LedgerError):
    """This process lost the run to another owner; nothing it does counts any more."""

    def __init__(self, run_id: str, epoch: int):
        super().__init__(f"epoch {epoch} of run {run_id!r} is over; another owner has it")
        self.run_id = run_id
        self.epoch = epoch


class ReadTooSlow(LedgerError):
    """A search took longer than a page may; narrow it down."""

    def __init__(self) -> None:
        super().__init__("the search took too long; narrow it down, for example to one agent or status")


class ApprovalNotFound(LedgerError, LookupError):
    """No approval of this id."""

    def __init__(self, approval_id: str):
        super().__init__(f"no approval {approval_id!r}; `celegraph approvals` lists the open ones")
        self.approval_id = approval_id


class DecisionRefused(LedgerError, ValueError):
    """The decision does not fit what was asked; nothing changed.  `field` names the wrong part."""

    def __init__(self, approval_id: str, problem: str, field: str | None = None):
        super().__init__(f"approval {approval_id!r}: {problem}")
        self.approval_id = approval_id
        self.problem = problem
        self.field = field


class LinkForged(CelegraphError, ValueError):
    """Nobody here has signed this link, or not in this form: it opens nothing."""

    def __init__(self) -> None:
        super().__init__(
            "this link is not valid: it was cut, changed, or signed with a secret no longer used"
        )


class LinkExpired(CelegraphError, ValueError):
    """The link was real, and its time is over; the question's page shows what came of it."""

    def __init__(self, approval_id: str, expired_at: datetime):
        super().__init__(f"the link to approval {approval_id!r} expired at {expired_at:%Y-%m-%d %H:%M} UTC")
        self.approval_id = approval_id
        self.expired_at = expired_at


class EffectNotFound(LedgerError, LookupError):
    """No effect of this key."""

    def __init__(self, key: str):
        super().__init__(f"no effect {key!r}; `celegraph trace RUN` shows a run's effects")
        self.key = key


class NotResolvable(LedgerError):
    """The effect is not in doubt any more, or a call may still be under way; `problem` says which."""

    def __init__(self, key: str, answer: str, *, status: str, problem: str):
        super().__init__(f"cannot resolve effect {key!r} as {answer}: {problem}")
        self.key = key
        self.status = status
        self.problem = problem


# -- inside a node ---------------------------------------------------------------------------------


class EffectOutsideRun(CelegraphError, RuntimeError):
    """An effect or approval was reached outside a celegraph run, where nothing would protect it."""


class EffectMisuse(CelegraphError, TypeError):
    """An effect was declared or called in a way the ledger cannot protect; the message says how."""


class EffectNotDone(CelegraphError):
    """Raise inside an effect to say: the provider certainly did nothing.  It may be called again."""


class EffectFailed(CelegraphError):
    """The provider refused this effect for good; `tool` and `key` say which one."""

    def __init__(self, tool: str, key: str, problem: str):
        super().__init__(f"effect {tool!r} failed: {problem}")
        self.tool = tool
        self.key = key
        self.problem = problem


class EffectSkipped(CelegraphError):
    """A person decided that this effect shall not happen; the agent goes on without it."""

    def __init__(self, tool: str, key: str, by: str | None, reason: str | None):
        super().__init__(f"effect {tool!r} was skipped by {by or 'somebody'}: {reason or '-'}")
        self.tool = tool
        self.key = key
        self.by = by
        self.reason = reason


class EffectDrift(CelegraphError):
    """A recorded call was reached again with other arguments, and `on_drift="fail"`."""

    def __init__(self, tool: str, key: str):
        super().__init__(f"effect {tool!r} was reached again with other arguments (key {key})")
        self.tool = tool
        self.key = key


class EffectsDisabled(CelegraphError):
    """This run is read-only: effects do not happen."""

    def __init__(self, run_id: str, tool: str):
        super().__init__(f"run {run_id!r} is read-only, effect {tool!r} was not performed")
        self.run_id = run_id
        self.tool = tool


class ApprovalRejected(CelegraphError):
    """An effect that requires an approval was reached, and the answer was no."""

    def __init__(self, tool: str, approval_id: str, status: str):
        super().__init__(f"effect {tool!r} was not approved: {approval_id} is {status}")
        self.tool = tool
        self.approval_id = approval_id
        self.status = status


class NodeExited(CelegraphError):
    """A node called sys.exit(); it is a failure of the node, not the end of the worker."""

    def __init__(self, code: object):
        super().__init__(f"a node called sys.exit({code!r})")
        self.code = code


class ClockBehind(CelegraphError):
    """A checkpoint would sort before its own parent: LangGraph orders them by the writer's clock, and going
    on would be invisible progress.  Tried again; synchronise the hosts' clocks."""


class InheritedState(CelegraphError):
    """A run that has stored nothing finds checkpoints under its id: somebody has deleted the row of an
    earlier run, and with them this one would skip what the earlier one has done and was allowed to do."""


class AttemptOver(CelegraphError):
    """A helper of an ended attempt was called (a leftover thread or task); it may not act."""

    def __init__(self, run_id: str):
        super().__init__(f"this attempt at run {run_id!r} is over; nothing may be done for it here")
        self.run_id = run_id


class RunFailed(CelegraphError):
    """`RunResult.get()`: the run ended without a result; `error` holds the recorded facts."""

    def __init__(self, run_id: str, status: str, error: object):
        super().__init__(f"run {run_id!r} is {status}: {error}")
        self.run_id = run_id
        self.status = status
        self.error = error


class DoorbellFailed(CelegraphError):
    """A worker could not advance the run just now; nothing is lost, the sweep rings again."""

    def __init__(self, run_id: str, problem: str):
        super().__init__(f"run {run_id!r} could not be advanced: {problem}; the sweep rings again")
        self.run_id = run_id
        self.problem = problem
