"""What an attempt that stops before the graph's end means for its run: questions, sleep, failure."""

from __future__ import annotations

import logging
from datetime import timedelta

from langchain_core.runnables import RunnableConfig

from celegraph.agent.asking import ask_for
from celegraph.agent.attempt import Attempt
from celegraph.agent.failures import (
    InvalidResume,
    Lost,
    Permanent,
    StoppedForDrain,
    Transient,
    classify,
    describe,
)
from celegraph.agent.graphs import Graph
from celegraph.agent.plan import Resume
from celegraph.agent.situation import Situation, look
from celegraph.agent.storable import UnstorableState
from celegraph.ledger import checkpoints
from celegraph.ledger.outcomes import Abandoned, Ask, Cancelled, Drained, Failed, Outcome, Sleeping, Waiting

logger = logging.getLogger("celegraph")

# Why an attempt was asked to stop.
CANCEL = "cancelled on request"
PAUSE = "paused on request"


def drained(attempt: Attempt) -> Outcome:
    """The attempt was asked to stop at a step, and has."""
    reason = attempt.drain_reason or "drained"
    return Cancelled(reason) if reason == CANCEL else Drained(reason)


def asks_of(attempt: Attempt, situation: Situation, refused: dict[str, str] | None = None) -> tuple[Ask, ...]:
    """Questions to open: for every pending interrupt that was never asked, or whose answer was refused.

    A task that failed after it got its answer still shows its interrupt; that one is answered.
    """
    asks = []
    for interrupt in situation.interrupts:
        known = situation.questions.get(interrupt.id)
        if known is None or known.status == "cancelled" or interrupt.id in (refused or {}):
            number = (known.ask if known else 0) + 1
            why = (refused or {}).get(interrupt.id)
            node = situation.asker(interrupt)
            asks.append(ask_for(attempt, interrupt, number, node=node, refused=why))
    return tuple(asks)


async def after_error(
    attempt: Attempt,
    graph: Graph,
    config: RunnableConfig,
    error: BaseException,
    resumed: Resume | None = None,
) -> Outcome:
    """What an error that reached the runner means for the run; `resumed`: it had just been given answers."""
    meaning = classify(error, attempt.agent.retry, own_connection_lost=attempt.pen.broken)
    if isinstance(error, UnstorableState) and error.checkpoint_id and not attempt.pen.broken:
        await checkpoints.forget_writers(
            attempt.pen, attempt.run_id, error.namespace, error.checkpoint_id, error.channel
        )
    match meaning:
        case StoppedForDrain():
            return drained(attempt)
        case Lost():
            return Abandoned(f"lost the run: {type(error).__name__}")
        case InvalidResume() if resumed is not None:
            situation = await look(attempt, graph, config)
            refused = dict.fromkeys(resumed.decisions, f"the graph refused the last answer: {error}")
            return Waiting("waits for a decision the graph accepts", asks_of(attempt, situation, refused))
        case Transient(after):
            return await _retry(attempt, graph, config, error, after)
        case Permanent() | InvalidResume():
            return _failed(attempt, error)


async def _retry(
    attempt: Attempt, graph: Graph, config: RunnableConfig, error: BaseException, after: timedelta | None
) -> Outcome:
    retry = attempt.agent.retry
    retries = await checkpoints.retries_so_far(attempt.pen, attempt.run_id)
    if retries + 1 >= retry.max_attempts:
        return _failed(attempt, error)
    # Questions of other branches are opened now, not after the back-off.
    situation = await look(attempt, graph, config)
    return Sleeping(
        after if after is not None else retry.delay(retries),
        f"{type(error).__name__} in the graph, retry {retries + 1} of {retry.max_attempts - 1}",
        retried=True,
        error=describe(error),
        asks=asks_of(attempt, situation),
    )


def _failed(attempt: Attempt, error: BaseException) -> Failed:
    # The message may carry the customer's data: it goes to the run row, not to the log.
    logger.warning(
        "run fails", extra={"run_id": attempt.run_id, "error": type(error).__name__}, exc_info=False
    )
    return Failed(f"{type(error).__name__} in the graph", describe(error))
