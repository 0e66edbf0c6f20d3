"""The agents of the tests: every node writes to the trail and passes the gate of its name.

Kill points around the effect: gate "pay" (before reserve), "pay:call" (reserved, before the call),
"pay:acted" (the provider has acted, nothing is recorded), "pay:recorded" (recorded, no checkpoint).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypedDict, TypeVar

import httpx
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from celegraph import ApprovalPolicy, EffectCall, Happened, NotHappened, ask_approval, effect
from tests.support.gates import DIRECTORY, gates_of_process
from tests.support.trail import Trail

PROVIDER = "CELEGRAPH_TEST_PROVIDER"
# With the tests' call window of a second a doubt is answered two seconds after its claim.
_CALL_TIMEOUT = 1.0


S = TypeVar("S", bound=Any)


class State(TypedDict, total=False):
    """What nodes tell each other; `cents` is the input."""

    cents: int
    passed: int
    receipt: str
    decision: str


class Node(Protocol):
    """A node that wants to know its run."""

    def __call__(self, state: State, config: RunnableConfig) -> Any: ...


def _run_id(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def enter(step: str, run_id: str) -> None:
    """A node has been entered: first the trail, then the gate."""
    Trail(Path(os.environ[DIRECTORY])).note(run_id, step)
    gates_of_process().pass_through(step, run_id)


def step(name: str) -> Node:
    """A node that only counts."""

    def node(state: State, config: RunnableConfig) -> State:
        enter(name, _run_id(config))
        return {"passed": state.get("passed", 0) + 1}

    return node


# -- the effect, under each policy -----------------------------------------------------------------


def _act(call: EffectCall, run_id: str, cents: int) -> str:
    gates = gates_of_process()
    gates.pass_through("pay:call", run_id)
    answer = httpx.post(
        f"{os.environ[PROVIDER]}/pay",
        json={"run_id": run_id, "cents": cents},
        headers={"Idempotency-Key": call.key},
        timeout=_CALL_TIMEOUT,
    )
    answer.raise_for_status()
    gates.pass_through("pay:acted", run_id)
    call.provider_ref = str(answer.json()["id"])
    return call.provider_ref


def _look_up(call: EffectCall, run_id: str, cents: int) -> Happened | NotHappened:
    answer = httpx.get(f"{os.environ[PROVIDER]}/acts/{call.key}", timeout=_CALL_TIMEOUT)
    if answer.status_code == 404:
        return NotHappened()
    answer.raise_for_status()
    return Happened(answer.json()["id"], answer.json()["id"])


@effect("pay", in_doubt="retry", timeout=_CALL_TIMEOUT)
def pay(call: EffectCall, run_id: str, cents: int) -> str:
    """The provider honours the key: asked again after a doubt."""
    return _act(call, run_id, cents)


@effect("pay", in_doubt="retry", timeout=_CALL_TIMEOUT)
async def pay_async(call: EffectCall, run_id: str, cents: int) -> str:
    """The same, awaited."""
    return await asyncio.to_thread(_act, call, run_id, cents)


@effect("pay", in_doubt="reconcile", lookup=_look_up, timeout=_CALL_TIMEOUT)
def pay_looked_up(call: EffectCall, run_id: str, cents: int) -> str:
    """The provider is asked what happened."""
    return _act(call, run_id, cents)


@effect("pay", in_doubt="ask", timeout=_CALL_TIMEOUT)
def pay_asked(call: EffectCall, run_id: str, cents: int) -> str:
    """A person is asked what happened."""
    return _act(call, run_id, cents)


# -- the graphs ------------------------------------------------------------------------------------


def paying(perform: Callable[[str, int], str]) -> Node:
    """The node that pays, in a thread."""

    def node(state: State, config: RunnableConfig) -> State:
        run_id = _run_id(config)
        enter("pay", run_id)
        receipt = perform(run_id, state["cents"])
        gates_of_process().pass_through("pay:recorded", run_id)
        return {"receipt": receipt}

    return node


async def _pay_awaiting(state: State, config: RunnableConfig) -> State:
    run_id = _run_id(config)
    await asyncio.to_thread(enter, "pay", run_id)
    receipt = await pay_async(run_id, state["cents"])
    await asyncio.to_thread(gates_of_process().pass_through, "pay:recorded", run_id)
    return {"receipt": receipt}


def _ask(state: State, config: RunnableConfig) -> State:
    enter("ask", _run_id(config))
    decision = ask_approval(
        pay.bind(_run_id(config), state["cents"]), prompt="Pay?", policy=ApprovalPolicy(deadline="1h")
    )
    return {"decision": decision.status}


def chain_of(state: type[S], *nodes: tuple[str, Any]) -> StateGraph[S, None, S, S]:
    """The nodes one after the other, on a state of their own."""
    builder = StateGraph(state)
    before = START
    for name, node in nodes:
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    builder.add_edge(before, END)
    return builder


def chain(*nodes: tuple[str, Node]) -> StateGraph[State, None, State, State]:
    """The nodes one after the other."""
    return chain_of(State, *nodes)


_FIRST, _SECOND, _LAST = ("one", step("one")), ("two", step("two")), ("last", step("last"))

retried = chain(_FIRST, _SECOND, ("pay", paying(pay)), _LAST)
awaited = chain(_FIRST, _SECOND, ("pay", _pay_awaiting), _LAST)
looked_up = chain(_FIRST, _SECOND, ("pay", paying(pay_looked_up)), _LAST)
asked = chain(_FIRST, _SECOND, ("pay", paying(pay_asked)), _LAST)
approved = chain(_FIRST, ("ask", _ask), ("pay", paying(pay)), _LAST)
steps = chain(*((name, step(name)) for name in ("one", "two", "three", "four", "last")))
