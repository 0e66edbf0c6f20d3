"""The agents of the chaos: one of every shape that people build.

Each act carries a number that is its own within the run (`cents`), and an agent's output says which it
has paid and how many steps it took: the oracle compares that with what the provider did.
"""

from __future__ import annotations

import asyncio
import operator
import os
import time
from typing import Annotated, Any, TypedDict

import httpx
from langchain_core.runnables import RunnableConfig
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, Send, interrupt

from celegraph import ApprovalPolicy, EffectCall, ask_approval, effect, recorded
from celegraph.errors import ApprovalRejected
from tests.support.gates import gates_of_process
from tests.support.graphs import PROVIDER, chain_of, enter
from tests.support.policies import POLICIES, call_act, declared


class State(TypedDict, total=False):
    """`cents` is the input and makes runs differ; the rest only grows."""

    cents: int
    steps: Annotated[int, operator.add]
    paid: Annotated[list[int], operator.add]
    reads: Annotated[list[float], operator.add]


class Side(TypedDict, total=False):
    """What two subgraphs may both give back in one step."""

    steps: Annotated[int, operator.add]
    paid: Annotated[list[int], operator.add]


Node = Any  # a function, or a compiled subgraph

_PAY = {policy: declared(policy, f"chaos_{policy}", awaited=False) for policy in POLICIES}
_PAY_AWAITED = {policy: declared(policy, f"chaos_{policy}_awaited", awaited=True) for policy in POLICIES}
# Seconds; longer than the chaos's lease.
_LONG = 5.0
_TURNS = 9


@effect("chaos_allowed", in_doubt="ask", requires_approval=True, timeout=3.0)
def _pay_allowed(call: EffectCall, run_id: str, cents: int) -> str:
    """Never without an approval of its own."""
    return call_act(call, run_id, cents, "/act")


@recorded
def _read(run_id: str) -> float:
    """Never the same twice."""
    return time.time()


def _run_id(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def _count(name: str) -> Node:
    def node(state: State, config: RunnableConfig) -> State:
        enter(name, _run_id(config))
        return {"steps": 1}

    return node


def _paying(name: str, perform: Any, number: int) -> Node:
    def node(state: State, config: RunnableConfig) -> State:
        enter(name, _run_id(config))
        perform(_run_id(config), number)
        return {"steps": 1, "paid": [number]}

    return node


def _paying_awaited(name: str, perform: Any, number: int) -> Node:
    async def node(state: State, config: RunnableConfig) -> State:
        await asyncio.to_thread(enter, name, _run_id(config))
        await perform(_run_id(config), number)
        return {"steps": 1, "paid": [number]}

    return node


# -- loop: reads, and a payment every third time ------------------------------------------------------


def _turn(state: State, config: RunnableConfig) -> State:
    enter("turn", _run_id(config))
    seen = _read(_run_id(config))
    turn = state.get("steps", 0) + 1
    if turn % 3:
        return {"steps": 1, "reads": [seen]}
    _PAY["retry"](_run_id(config), turn)
    return {"steps": 1, "reads": [seen], "paid": [turn]}


def _again(state: State) -> str:
    return "turn" if state["steps"] < _TURNS else END


loop = StateGraph(State)
loop.add_node("turn", _turn)
loop.add_edge(START, "turn")
loop.add_conditional_edges("turn", _again, ["turn", END])


# -- branches: three policies side by side, one of them awaited ---------------------------------------

branches = StateGraph(State)
branches.add_node("retry", _paying("retry", _PAY["retry"], 1))
branches.add_node("reconcile", _paying_awaited("reconcile", _PAY_AWAITED["reconcile"], 2))
branches.add_node("ask", _paying("ask", _PAY["ask"], 3))
branches.add_node("join", _count("join"))
for _branch in ("retry", "reconcile", "ask"):
    branches.add_edge(START, _branch)
branches.add_edge(["retry", "reconcile", "ask"], "join")
branches.add_edge("join", END)


# -- fan-out by Send ----------------------------------------------------------------------------------


def _spread(state: State, config: RunnableConfig) -> State:
    enter("spread", _run_id(config))
    return {"steps": 1}


def _sends(state: State) -> list[Send]:
    return [Send("one_of_many", {"cents": number}) for number in range(1, 5)]


def _one_of_many(state: State, config: RunnableConfig) -> State:
    enter("one_of_many", _run_id(config))
    _PAY["reconcile"](_run_id(config), state["cents"])
    return {"steps": 1, "paid": [state["cents"]]}


fan_out = StateGraph(State)
fan_out.add_node("spread", _spread)
fan_out.add_node("one_of_many", _one_of_many)
fan_out.add_node("join", _count("join"))
fan_out.add_edge(START, "spread")
fan_out.add_conditional_edges("spread", _sends, ["one_of_many"])
fan_out.add_edge("one_of_many", "join")
fan_out.add_edge("join", END)


# -- a subgraph with steps and payments of its own ------------------------------------------------------

_inner = chain_of(
    State,
    ("inner_one", _count("inner_one")),
    ("inner_pay", _paying("inner_pay", _PAY["reconcile"], 1)),
    ("inner_ask", _paying("inner_ask", _PAY["ask"], 2)),
)
nested = chain_of(
    State,
    ("outer_one", _count("outer_one")),
    ("inner", _inner.compile()),
    ("outer_pay", _paying_awaited("outer_pay", _PAY_AWAITED["retry"], 3)),
)


# -- subgraphs side by side, whose passes fail now and then after they have enqueued -------------------


def _enqueuing(name: str, perform: Any, number: int) -> Node:
    def node(state: State, config: RunnableConfig) -> State:
        enter(name, _run_id(config))
        perform.enqueue(_run_id(config), number)
        _now_and_then()
        return {"steps": 1, "paid": [number]}

    return node


def _now_and_then() -> None:
    """Of the clock, so that no re-run is condemned to the same."""
    if time.monotonic_ns() // 1_000_000 % 2:
        raise TimeoutError


def _one_side(first: int) -> Any:
    side = StateGraph(Side)
    retry = RetryPolicy(initial_interval=0.05, jitter=False, max_attempts=10, retry_on=TimeoutError)
    for number in (first, first + 1):
        name = f"enqueue_{number}"
        side.add_node(name, _enqueuing(name, _PAY["retry"], number), retry_policy=retry)
    side.add_edge(START, f"enqueue_{first}")
    side.add_edge(f"enqueue_{first}", f"enqueue_{first + 1}")
    return side.compile()


side_by_side = StateGraph(State)
side_by_side.add_node("left", _one_side(1))
side_by_side.add_node("right", _one_side(3))
side_by_side.add_node("join", _count("join"))
side_by_side.add_edge(START, "left")
side_by_side.add_edge(START, "right")
side_by_side.add_edge(["left", "right"], "join")
side_by_side.add_edge("join", END)


# -- the outbox, under each policy ----------------------------------------------------------------------

outbox = chain_of(
    State,
    ("one", _count("one")),
    *((f"by_{p}", _paying(f"by_{p}", _PAY[p].enqueue, n)) for n, p in enumerate(POLICIES, start=1)),
    ("last", _count("last")),
)


# -- people: asked with and without a deadline, for a call and freely --------------------------------------


def _asking(deadline: str | None) -> Node:
    def node(state: State, config: RunnableConfig) -> State:
        run_id = _run_id(config)
        enter("ask", run_id)
        policy = ApprovalPolicy(deadline=deadline)
        decision = ask_approval(_PAY["retry"].bind(run_id, 1), prompt="Pay?", policy=policy)
        if not decision.approved:
            return {"steps": 1}
        _PAY["retry"](**decision.args)
        return {"steps": 1, "paid": [decision.args["cents"]]}

    return node


def _free_question(state: State, config: RunnableConfig) -> State:
    enter("question", _run_id(config))
    interrupt("Go on?")
    return {"steps": 1}


approved = chain_of(State, ("one", _count("one")), ("ask", _asking(None)), ("question", _free_question))
urgent = chain_of(State, ("one", _count("one")), ("ask", _asking("6s")), ("last", _count("last")))


def _if_allowed(state: State, config: RunnableConfig) -> State:
    enter("pay", _run_id(config))
    try:
        _pay_allowed(_run_id(config), 1)
    except ApprovalRejected:
        return {"steps": 1}
    return {"steps": 1, "paid": [1]}


allowed = chain_of(State, ("one", _count("one")), ("pay", _if_allowed), ("last", _count("last")))


# -- what takes its time, and what fails now and then --------------------------------------------------------


async def _long_awaited(state: State, config: RunnableConfig) -> State:
    await asyncio.to_thread(enter, "long_awaited", _run_id(config))
    await asyncio.sleep(_LONG)
    await _PAY_AWAITED["ask"](_run_id(config), 2)
    return {"steps": 1, "paid": [2]}


def _long(state: State, config: RunnableConfig) -> State:
    enter("long", _run_id(config))
    _PAY["reconcile"](_run_id(config), 1)
    time.sleep(_LONG)
    return {"steps": 1, "paid": [1]}


long = chain_of(State, ("long", _long), ("long_awaited", _long_awaited), ("last", _count("last")))


def _failing_now_and_then(state: State, config: RunnableConfig) -> State:
    enter("failing", _run_id(config))
    _PAY["reconcile"](_run_id(config), 1)
    _now_and_then()
    return {"steps": 1, "paid": [1]}


failing = chain_of(
    State, ("one", _count("one")), ("failing", _failing_now_and_then), ("last", _count("last"))
)


# -- the functional API ----------------------------------------------------------------------------


@task
def _paid_task(run_id: str, number: int) -> int:
    enter("task", run_id)
    _PAY["ask"](run_id, number)
    return number


@entrypoint()
def functional(given: dict[str, Any], *, config: RunnableConfig) -> dict[str, Any]:
    """Two payments side by side, then one of the body's own."""
    run_id = _run_id(config)
    paid = [future.result() for future in [_paid_task(run_id, 1), _paid_task(run_id, 2)]]
    _PAY["reconcile"](run_id, 3)
    return {"steps": 1, "paid": [*paid, 3]}


# -- what the oracle must find: a payment past the ledger ---------------------------------------------


def _pay_past_the_ledger(state: State, config: RunnableConfig) -> State:
    run_id = _run_id(config)
    enter("careless", run_id)
    httpx.post(
        f"{os.environ[PROVIDER]}/act",
        json={"run_id": run_id, "cents": 1},
        headers={"Idempotency-Key": "none of the ledger's"},
    )
    gates_of_process().pass_through("careless:acted", run_id)
    return {"steps": 1, "paid": [1]}


careless = chain_of(State, ("pay", _pay_past_the_ledger))
