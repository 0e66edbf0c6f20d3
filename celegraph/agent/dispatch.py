"""Performs released intents: the same claims, policies and records as a call in a node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from celegraph.agent.apart import apart
from celegraph.agent.attempt import boot_time
from celegraph.agent.conclude import kept_result, record_or_keep
from celegraph.agent.declaration import Declaration, EffectCall, NotHappened, declared
from celegraph.agent.doubt import Replay, Stop, answer_doubt
from celegraph.agent.failures import describe, is_the_codes_own
from celegraph.agent.identify import call_timeout
from celegraph.agent.lookups import body_of, call_of, look_up_async
from celegraph.agent.not_done import is_not_done
from celegraph.agent.policy import PolicyOf
from celegraph.agent.questions import doubt_question
from celegraph.config import Config
from celegraph.ledger import doubts, effects, outbox
from celegraph.ledger.db_errors import in_log, is_lost
from celegraph.ledger.effect_row import Effect, Sent
from celegraph.ledger.pen import Pen

logger = logging.getLogger("celegraph")

_LONGEST_PAUSE = timedelta(minutes=10)


@dataclass
class DispatchReport:
    """What one dispatch did."""

    sent: int = 0
    failed: int = 0
    doubtful: int = 0

    def counts(self) -> dict[str, int]:
        """For logs and the tick."""
        return {"sent": self.sent, "failed": self.failed, "doubtful": self.doubtful}


async def dispatch_once(
    pen: Pen,
    config: Config,
    policy_of: PolicyOf,
    *,
    known: Mapping[str, Declaration] | None = None,
    limit: int = 50,
    enough: Callable[[], bool] = lambda: False,
) -> DispatchReport:
    """Perform up to `limit` released intents of `known` tools (default: all that this process has
    declared).  Safe to run many times at once.

    `policy_of`: an agent's policy, for the questions about its doubts.  `enough`: asked before each call
    whether to leave the rest to the next tick.
    """
    known = declared() if known is None else known
    report = DispatchReport()
    horizons = {tool: config.call_window + call_timeout(config, d) for tool, d in known.items()}
    for row in await outbox.doubtful(pen, horizons, limit):
        if enough():
            return report
        await _apart(pen, row, report, _doubt(pen, config, known[row.tool], row, report, policy_of))
    for _ in range(limit):
        if enough():
            break
        until = _call_until(config)
        claimed = await outbox.claim_next(pen, "dispatcher", horizons)
        if claimed is None:
            break
        call = _perform(pen, config, known[claimed.tool], claimed, until, report)
        await _apart(pen, claimed, report, call)
    return report


async def _apart(pen: Pen, row: Effect, report: DispatchReport, work: Coroutine[Any, Any, None]) -> None:
    """What goes wrong with one intent (a look-up that answers nonsense) must not keep all others back."""
    try:
        await work
    except Exception as error:
        if is_lost(error):
            raise
        facts = {"key": row.idempotency_key, "tool": row.tool, "error": in_log(error)}
        logger.error("an intent cannot be handled", extra=facts)
        await outbox.try_later(pen, row, "pending", _LONGEST_PAUSE)
        report.doubtful += 1


def _call_until(config: Config) -> float:
    """How long a claim that is asked for now may be used: later, somebody else may hold the next one."""
    return boot_time() + config.call_window.total_seconds()


async def _perform(
    pen: Pen, config: Config, decl: Declaration, row: Effect, until: float, report: DispatchReport
) -> None:
    limit = call_timeout(config, decl)
    call = call_of(row, limit)
    try:
        value = await _called(decl, call, row, limit, until)
    except _TooLate:
        await _missed(pen, row, report)
        return
    except BaseException as error:
        if not is_the_codes_own(error):
            raise
        await _failed(pen, decl, row, error, report)
        return
    stored, problem = kept_result(value, config.max_value_bytes)
    if problem is not None:
        logger.error("result of an intent cannot be kept", extra={"key": call.key, "path": problem.path})
    await record_or_keep(pen, config, row.last_call(), Sent(stored, call.provider_ref, "dispatcher"))
    report.sent += 1


class _TooLate(Exception):
    """The claim may not be used any more."""


async def _called(decl: Declaration, call: EffectCall, row: Effect, limit: timedelta, until: float) -> Any:
    args = body_of(row)

    def in_thread() -> Any:
        # Asked here and not where the job is submitted: it may have waited for a free thread.
        _check_window(until)
        return decl.function(call, **args)

    if not decl.is_async:
        return await asyncio.to_thread(in_thread)
    _check_window(until)
    async with asyncio.timeout(limit.total_seconds()):
        return await apart(decl.function(call, **args))


def _check_window(until: float) -> None:
    if boot_time() > until:
        raise _TooLate


async def _missed(pen: Pen, row: Effect, report: DispatchReport) -> None:
    """The machine slept, or no thread was free, between the claim and the call: the claim was not used."""
    late = {"type": "celegraph.CallWindowMissed", "message": "the call could not start in time"}
    if row.earlier_doubt:
        await effects.record_doubt(pen, row.last_call(), late, over=True)
        await outbox.try_later(pen, row, "pending", timedelta(0))
        report.doubtful += 1
    else:
        await effects.record_failed(pen, row.last_call(), late)
        await outbox.try_later(pen, row, "failed", timedelta(0))
        report.failed += 1


async def _failed(
    pen: Pen, decl: Declaration, row: Effect, error: BaseException, report: DispatchReport
) -> None:
    facts = describe(error)
    if is_not_done(decl, error) and not row.earlier_doubt:
        await effects.record_failed(pen, row.last_call(), facts)
        # A dead letter, until a person releases it.
        dead = row.attempts >= decl.tries
        await outbox.try_later(pen, row, "failed", None if dead else _pause(row.attempts))
        report.failed += 1
        return
    over = decl.in_doubt == "retry"
    await effects.record_doubt(pen, row.last_call(), facts, over=over)
    # With a key the provider knows, the next look may be soon; else the horizon must pass first.
    if over:
        await outbox.try_later(pen, row, "pending", _pause(row.attempts))
    report.doubtful += 1


async def _doubt(
    pen: Pen, config: Config, decl: Declaration, row: Effect, report: DispatchReport, policy_of: PolicyOf
) -> None:
    answer = answer_doubt(decl, row)
    settled = False
    if answer == "look up":
        found = await look_up_async(decl, row, call_timeout(config, decl))
        settled = isinstance(found, NotHappened)
        answer = answer_doubt(decl, row, found)
        if isinstance(answer, Replay):
            ref = getattr(found, "ref", None)
            stored, _ = kept_result(answer.result, config.max_value_bytes)
            await effects.record_sent(pen, row.last_call(), Sent(stored, ref, "look-up"))
            report.sent += 1
            return
    match answer:
        case Stop(outcome):
            delay = getattr(outcome, "delay", timedelta(seconds=1))
            await outbox.try_later(pen, row, "pending", delay)
        case "ask" if decl.unattended and row.attempts >= decl.tries:
            await _give_up(pen, row, report)
            return
        case "ask" if not decl.unattended:
            await doubts.ask(pen, row.run_id, doubt_question(row, policy_of(row.agent), row.agent))
            await outbox.try_later(pen, row, "pending", _LONGEST_PAUSE)
        case _:
            horizon = config.call_window + call_timeout(config, decl)
            until = _call_until(config)
            again = await outbox.claim_again(pen, row, "dispatcher", horizon, settled=settled)
            if again is not None:
                await _perform(pen, config, decl, again, until, report)
            return
    report.doubtful += 1


async def _give_up(pen: Pen, row: Effect, report: DispatchReport) -> None:
    """Nobody can tell and nobody is asked: a dead letter, until a person releases it."""
    facts = {"type": "celegraph.NobodyKnows", "message": f"no answer after {row.attempts} tries"}
    await effects.record_failed(pen, row.last_call(), facts)
    await outbox.try_later(pen, row, "failed", None)
    report.failed += 1


def _pause(attempts: int) -> timedelta:
    return min(timedelta(seconds=2.0 ** min(attempts - 1, 30)), _LONGEST_PAUSE)
