"""Drives one attempt from whatever is true of the run to an outcome.  One path, async."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from celegraph.agent import advice
from celegraph.agent import langgraph_words as words
from celegraph.agent.asking import resume_value
from celegraph.agent.attempt import GRAPH_CHANGED, Attempt, Unwind, enter
from celegraph.agent.endings import CANCEL, PAUSE, after_error, asks_of, drained
from celegraph.agent.graphs import Graph
from celegraph.agent.plan import (
    Continue,
    Finish,
    Repair,
    Resume,
    Start,
    Wait,
    WaitForCode,
    choose,
)
from celegraph.agent.situation import Situation, look
from celegraph.agent.tool_calls import ToolCallNames
from celegraph.agent.unknown import not_known
from celegraph.ledger import checkpoints, effects
from celegraph.ledger.outcomes import (
    Abandoned,
    Cancelled,
    Drained,
    Failed,
    Finished,
    Outcome,
    Waiting,
)
from celegraph.ledger.values import clean_json


@dataclass
class _Drive:
    """One go through the loop; `output` is the newest full state the graph has shown."""

    attempt: Attempt
    graph: Graph
    config: RunnableConfig
    output: Any = None
    has_output: bool = False


async def drive(attempt: Attempt, graph: Graph) -> Outcome:
    """Advance the run until it ends, waits, sleeps or must be given up; never raises an Exception."""
    run_id = attempt.run_id
    go = _Drive(
        attempt,
        graph,
        {
            "configurable": {"thread_id": run_id},
            # Equal to what is stored, so LangGraph resumes a started run instead of starting it twice.
            "metadata": {"run_id": run_id},
            "max_concurrency": attempt.config.max_concurrency,
            "callbacks": [ToolCallNames(), attempt.passes],
        },
    )
    known = attempt.saver.known
    known.fresh = attempt.run.fresh
    known.before_writes = attempt.before_writes
    known.stop = attempt.stop_for_code
    attempt.saver.pending.entered = attempt.passes.entered
    attempt.graph = graph
    attempt.passes.stream = attempt.stream
    leave = enter(attempt)
    try:
        outcome = await _outcome(go)
        await advice.record(attempt)
        return outcome
    finally:
        attempt.over = True
        if attempt.stream is not None:
            attempt.stream.close()
        leave()


async def _outcome(go: _Drive) -> Outcome:
    try:
        return await _advance(go)
    except Unwind:
        return go.attempt.stopped or Abandoned("unwound")
    except Exception as error:
        # LangGraph's or our own reads failed, outside any node.
        return await after_error(go.attempt, go.graph, go.config, error)


async def _advance(go: _Drive) -> Outcome:
    attempt = go.attempt
    if attempt.run.cancel_requested_at is not None:
        return Cancelled(CANCEL)
    if attempt.run.pause_requested_at is not None:
        # Asked of an owner that died: settle finds the request and holds the run.
        return Drained(PAUSE)
    if attempt.epoch > 1:
        for effect in await effects.of_run(attempt.pen, attempt.run_id):
            attempt.effects.put(effect)
    last: tuple[str, str | None, tuple[str, ...]] | None = None
    while True:
        situation = await look(attempt, go.graph, go.config)
        action = choose(situation)
        now = (
            type(action).__name__,
            situation.checkpoint_id,
            tuple(i.id for i in situation.interrupts),
        )
        if now == last and not isinstance(action, Finish | Wait):
            return Failed(
                "the graph makes no progress", {"type": "celegraph.NoProgress", "message": str(now)}
            )
        last = now
        match action:
            case Finish():
                return Finished(clean_json(await _output(go)))
            case Wait():
                advice.notice_questions(attempt, situation.interrupts)
                return Waiting("waits for a decision", asks_of(attempt, situation))
            case WaitForCode(names):
                return Waiting(f"{GRAPH_CHANGED}: {not_known(names)}", waits_for="code")
        if attempt.drain_reason is not None:
            return drained(attempt)
        if isinstance(action, Repair):
            await checkpoints.forget_failures(attempt.pen, attempt.run_id)
            continue
        error = await _invoke(go, await _input(go, action, situation))
        if attempt.stopped is not None:
            return attempt.stopped
        if error is not None:
            return await after_error(
                attempt, go.graph, go.config, error, action if isinstance(action, Resume) else None
            )


async def _input(go: _Drive, action: Start | Resume | Continue, situation: Situation) -> Any:
    match action:
        case Start():
            if isinstance(go.graph, CompiledStateGraph):
                return go.attempt.run.input
            # The body of an @entrypoint starts before LangGraph has stored its input; so store it first.
            await go.graph.aupdate_state(go.config, go.attempt.run.input, as_node=words.INPUT)
            return None
        case Resume(decisions):
            pending = {i.id: i for i in situation.interrupts}
            # Always the map form: a plain value leaves an answer behind that LangGraph gives to the
            # next question.
            return Command(resume={k: resume_value(pending[k], a) for k, a in decisions.items()})
    return None


async def _invoke(go: _Drive, given: Any) -> BaseException | None:
    try:
        async for values in _values(go, given):
            if not (isinstance(values, dict) and words.INTERRUPT in values):
                go.output, go.has_output = values, True
    except Unwind as unwind:
        return unwind
    except asyncio.CancelledError:
        raise
    except Exception as error:
        return error
    return None


async def _values(go: _Drive, given: Any) -> AsyncIterator[Any]:
    """The graph's states as it runs; what else it says goes to the attempt's stream, if there is one."""
    how: dict[str, Any] = {"durability": "sync", "control": go.attempt.control}
    stream = go.attempt.stream
    if stream is None:
        async for values in go.graph.astream(given, go.config, stream_mode="values", **how):
            yield values
        return
    modes: Any = ["values", *stream.modes]
    parts: AsyncIterator[Any] = go.graph.astream(given, go.config, stream_mode=modes, subgraphs=True, **how)
    async for namespace, mode, told in parts:
        if mode != "values":
            stream.heard(namespace, mode, told)
        elif namespace == ():
            yield told


async def _output(go: _Drive) -> Any:
    if go.has_output:
        return go.output
    # The process died between the last checkpoint and the settle: on a finished thread LangGraph runs
    # nothing and returns the final state.
    return await go.graph.ainvoke(None, go.config)
