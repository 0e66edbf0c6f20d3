"""A provider in the test's own process with its own log, told for each call how to fail; and the agents
whose nodes want effects of it.

Only the tools that are retried by key heed keys; every call of the others acts.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Literal, TypedDict

import httpx
from langgraph.graph import START, StateGraph

from celegraph import EffectCall, Happened, NotHappened, effect
from celegraph.agent.declaration import Found, Unknown
from celegraph.errors import EffectSkipped

Fault = Literal[
    "refuses",  # nothing is done, and the client knows
    "loses the request",  # nothing is done, and the client cannot know
    "acts, no answer",
    "acts, resets",
    "acts, says 500",
    "acts, then is busy",  # no answer, and 409 to the next call under this key
    "acts, hangs",  # until `let_go`
    "look-up fails",
]
FAULTS: tuple[Fault, ...] = (
    "refuses",
    "loses the request",
    "acts, no answer",
    "acts, resets",
    "acts, says 500",
    "acts, then is busy",
    "acts, hangs",
    "look-up fails",
)
Policy = Literal["retry", "reconcile", "ask"]
POLICIES: tuple[Policy, ...] = ("retry", "reconcile", "ask")


class Want(TypedDict):
    """One act that a node wants, once; `name` is unique among all runs."""

    name: str
    policy: Policy
    outbox: bool


class Provider:
    """`acts` is the truth: (key, what was wanted), in order."""

    def __init__(self) -> None:
        self.acts: list[tuple[str, str]] = []
        self.faults: deque[Fault] = deque()
        self.hanging: list[threading.Event] = []
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    def call(self, key: str, want: str, *, heeds: bool) -> str:
        """Act (once per key if it `heeds` them), and answer; or as the next fault says."""
        if (gate := self._acted(key, want, heeds)) is not None:
            gate.wait()
        return f"receipt of {key}"

    async def call_awaited(self, key: str, want: str, *, heeds: bool) -> str:
        """The same without a thread: one that outlived its attempt could act after time has jumped."""
        if (gate := self._acted(key, want, heeds)) is not None:
            await asyncio.to_thread(gate.wait)
        return f"receipt of {key}"

    def _acted(self, key: str, want: str, heeds: bool) -> threading.Event | None:
        """What the answer waits for."""
        with self._lock:
            fault = self._fault("look-up fails")
            if fault == "refuses":
                raise ConnectionRefusedError("nobody listens")
            if fault == "loses the request":
                raise ConnectionResetError("before it was read")
            if heeds and key in self._busy:
                self._busy.discard(key)
                raise _answered(409)
            if not heeds or key not in self.done:
                self.acts.append((key, want))
        match fault:
            case "acts, no answer":
                raise TimeoutError("no answer")
            case "acts, resets":
                raise ConnectionResetError("after the act")
            case "acts, says 500":
                raise _answered(500)
            case "acts, then is busy":
                self._busy.add(key)
                raise TimeoutError("no answer")
            case "acts, hangs":
                gate = threading.Event()
                self.hanging.append(gate)
                return gate
        return None

    def look_up(self, key: str) -> Found:
        """What became of this key."""
        with self._lock:
            if self.faults and self.faults[0] == "look-up fails":
                self.faults.popleft()
                return Unknown("down")
            return Happened(f"receipt of {key}", ref=key) if key in self.done else NotHappened()

    def let_go(self) -> None:
        """Calls that hang get their answers now."""
        for gate in self.hanging:
            gate.set()

    @property
    def done(self) -> set[str]:
        """The keys under which something was done."""
        return {key for key, _ in self.acts}

    def times(self) -> tuple[Counter[str], Counter[str]]:
        """How often it has acted: by key, and by what was wanted."""
        return Counter(key for key, _ in self.acts), Counter(want for _, want in self.acts)

    def _fault(self, kept: Fault) -> Fault | None:
        return self.faults.popleft() if self.faults and self.faults[0] != kept else None


def _answered(status: int) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "http://provider/")
    return httpx.HTTPStatusError(str(status), request=request, response=httpx.Response(status))


# -- the agents ------------------------------------------------------------------------------------


class State(TypedDict, total=False):
    """`together`: the node does not wait for one effect before it wants the next."""

    wants: list[Want]
    together: bool


def agents(provider: Provider) -> dict[str, StateGraph[State]]:
    """One agent whose node calls plain functions, one whose node awaits."""
    tools = {policy: _tool(provider, policy) for policy in POLICIES}
    awaited = {policy: _awaited_tool(provider, policy) for policy in POLICIES}

    def act(state: State) -> State:
        for want in state["wants"]:
            _unless_skipped(lambda want=want: _wanted(tools, want))  # type: ignore[misc]
        return {}

    async def act_awaiting(state: State) -> State:
        if state.get("together"):
            await asyncio.gather(*(_unless_skipped_awaited(_wanted(awaited, w)) for w in state["wants"]))
            return {}
        for want in state["wants"]:
            await _unless_skipped_awaited(_wanted(awaited, want))
        return {}

    return {"sync": _graph(act), "async": _graph(act_awaiting)}


def _graph(act: Any) -> StateGraph[State]:
    """`act` is plain or awaits."""
    graph = StateGraph(State)
    graph.add_node("act", act)
    graph.add_node("last", lambda state: None)
    graph.add_edge(START, "act")
    graph.add_edge("act", "last")
    return graph


def _tool(provider: Provider, policy: Policy) -> Any:
    @effect(f"{policy}-sync", in_doubt=policy, lookup=_look_up(provider, policy))
    def act(call: EffectCall, want: str) -> str:
        call.provider_ref = call.key
        return provider.call(call.key, want, heeds=policy == "retry")

    return act


def _awaited_tool(provider: Provider, policy: Policy) -> Any:
    @effect(f"{policy}-async", in_doubt=policy, lookup=_look_up(provider, policy))
    async def act(call: EffectCall, want: str) -> str:
        return await provider.call_awaited(call.key, want, heeds=policy == "retry")

    return act


def _look_up(provider: Provider, policy: Policy) -> Any:
    return (lambda call, want: provider.look_up(call.key)) if policy == "reconcile" else None


def _wanted(tools: dict[Policy, Any], want: Want) -> Any:
    tool = tools[want["policy"]]
    return tool.enqueue(want["name"]) if want["outbox"] else tool(want["name"])


def _unless_skipped(perform: Callable[[], Any]) -> None:
    try:
        perform()
    except EffectSkipped:
        return  # a person has decided that it shall not happen


async def _unless_skipped_awaited(performed: Any) -> None:
    try:
        await performed
    except EffectSkipped:
        return
