"""Agents that misbehave: their nodes fail, exit, kill their process, or take their time."""

from __future__ import annotations

import os
import signal
import sys

from langchain_core.runnables import RunnableConfig

from celegraph import ApprovalPolicy, ask_approval
from tests.support.graphs import State, chain, enter, pay, step
from tests.support.trail import Trail

SECRET = "customer 4711"


def _run_id(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def _fail(state: State, config: RunnableConfig) -> State:
    raise RuntimeError(f"no such account: {SECRET}")


def _fail_once(state: State, config: RunnableConfig) -> State:
    enter("flaky", _run_id(config))
    if Trail.of_process().steps(_run_id(config)).count("flaky") == 1:
        raise TimeoutError
    return {}


def _exit(state: State, config: RunnableConfig) -> State:
    sys.exit(3)


async def _exit_awaited(state: State, config: RunnableConfig) -> State:
    sys.exit(-1)


def _eat_memory(state: State, config: RunnableConfig) -> State:
    raise MemoryError


async def _eat_memory_awaited(state: State, config: RunnableConfig) -> State:
    raise MemoryError


def _kill(state: State, config: RunnableConfig) -> State:
    enter("kill", _run_id(config))
    if Trail.of_process().steps(_run_id(config)).count("kill") <= state["cents"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"receipt": "survived"}


def _ask_until(state: State, config: RunnableConfig) -> State:
    policy = ApprovalPolicy(deadline=state["decision"])
    decision = ask_approval(pay.bind(_run_id(config), 1), prompt="Pay?", policy=policy)
    return {"receipt": decision.status}


_FIRST, _LAST = ("one", step("one")), ("last", step("last"))

failing = chain(_FIRST, ("fail", _fail))
flaky = chain(_FIRST, ("flaky", _fail_once), _LAST)
exiting = chain(_FIRST, ("exit", _exit), _LAST)
exiting_awaited = chain(_FIRST, ("exit", _exit_awaited), _LAST)
eating = chain(_FIRST, ("eat", _eat_memory), _LAST)
eating_awaited = chain(_FIRST, ("eat", _eat_memory_awaited), _LAST)
# Kills its process as often as `cents` says.
killing = chain(_FIRST, ("kill", _kill), _LAST)
# Asks with the deadline that its input names.
deadlined = chain(("ask", _ask_until), _LAST)
