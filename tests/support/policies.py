"""Agents that pay under every policy, in every way a call can be made: awaited or not, or by the outbox.

One paying node and one more, and the gates of `graphs`, with "pay:look-up" before a look-up's request.
A tool for each policy and colour: a dispatcher performs intents by the tool's name.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable
from typing import Any, Literal

import httpx
from langchain_core.runnables import RunnableConfig

from celegraph import EffectCall, Happened, NotHappened, effect
from tests.support.aiming import aiming
from tests.support.gates import gates_of_process
from tests.support.graphs import PROVIDER, Node, State, chain, enter, paying, step

Policy = Literal["retry", "reconcile", "ask"]
POLICIES: tuple[Policy, ...] = ("retry", "reconcile", "ask")
WAYS = ("sync", "async", "outbox")
AGENTS = {f"{policy}_{way}": f"tests.support.policies:{policy}_{way}" for policy in POLICIES for way in WAYS}
# Long enough to be killed in a call on a busy machine; with a call window of a second a doubt is answered
# four seconds after its claim.
_TIMEOUT = 3.0


@functools.cache
def _client_of(pid: int) -> httpx.Client:
    # Each request connects anew: what a request proves by failing is not blurred by an older one's socket.
    return httpx.Client(timeout=_TIMEOUT, limits=httpx.Limits(max_keepalive_connections=0))


def _client() -> httpx.Client:
    """This process's; making one takes longer than all the rest of a call."""
    return _client_of(os.getpid())


def call_act(call: EffectCall, run_id: str, cents: int, path: str) -> str:
    """Ask the provider to act at `path`, past the gates; returns its reference."""
    gates = gates_of_process()
    gates.pass_through("pay:call", run_id)
    with aiming() as trace:
        answer = _client().post(
            f"{os.environ[PROVIDER]}{path}",
            json={"run_id": run_id, "cents": cents},
            headers={"Idempotency-Key": call.key},
            extensions={"trace": trace},
        )
    answer.raise_for_status()
    gates.pass_through("pay:acted", run_id)
    call.provider_ref = str(answer.json()["id"])
    return call.provider_ref


def _look_up(call: EffectCall, run_id: str, cents: int) -> Happened | NotHappened:
    gates_of_process().pass_through("pay:look-up", run_id)
    answer = _client().get(f"{os.environ[PROVIDER]}/acts/{call.key}")
    if answer.status_code == 404:
        return NotHappened()
    answer.raise_for_status()
    return Happened(answer.json()["id"], answer.json()["id"])


async def _look_up_awaited(call: EffectCall, run_id: str, cents: int) -> Happened | NotHappened:
    return await asyncio.to_thread(_look_up, call, run_id, cents)


def declared(policy: Policy, name: str, *, awaited: bool) -> Any:
    """An effect `(run_id, cents)` under this policy; once per process, or it is two effects."""
    # Only who answers a doubt by the same key again needs a provider that heeds it.
    path = "/pay" if policy == "retry" else "/act"

    def pay(call: EffectCall, run_id: str, cents: int) -> str:
        return call_act(call, run_id, cents, path)

    async def pay_awaited(call: EffectCall, run_id: str, cents: int) -> str:
        return await asyncio.to_thread(call_act, call, run_id, cents, path)

    lookup: Any = (_look_up_awaited if awaited else _look_up) if policy == "reconcile" else None
    function: Any = pay_awaited if awaited else pay
    function.__qualname__ = name
    return effect(name, in_doubt=policy, lookup=lookup, timeout=_TIMEOUT)(function)


def _paying_awaiting(perform: Any) -> Node:
    async def node(state: State, config: RunnableConfig) -> State:
        run_id = str(config["configurable"]["thread_id"])
        await asyncio.to_thread(enter, "pay", run_id)
        receipt = await perform(run_id, state["cents"])
        await asyncio.to_thread(gates_of_process().pass_through, "pay:recorded", run_id)
        return {"receipt": receipt}

    return node


def _agent(policy: Policy, way: str) -> Any:
    perform = declared(policy, f"{policy}_{way}", awaited=way == "async")
    makers: dict[str, Callable[[], Node]] = {
        "sync": lambda: paying(perform),
        "async": lambda: _paying_awaiting(perform),
        "outbox": lambda: paying(perform.enqueue),
    }
    return chain(("pay", makers[way]()), ("last", step("last")))


def __getattr__(name: str) -> Any:
    # Made when first asked for, and once: two declarations of one tool would be two effects.
    if name not in AGENTS:
        raise AttributeError(name)
    policy, _, way = name.partition("_")
    agent = globals()[name] = _agent(next(p for p in POLICIES if p == policy), way)
    return agent
