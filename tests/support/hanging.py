"""Agents whose nodes hang, starve or take long: what no exception tells."""

from __future__ import annotations

import os
import re
import resource
import select
import time

import httpx
from langchain_core.runnables import RunnableConfig

from celegraph import heartbeat
from tests.support.gates import gates_of_process
from tests.support.graphs import Node, State, chain, enter, pay, paying, step
from tests.support.odd import _kill, _run_id
from tests.support.trail import Trail

_FIRST, _LAST = ("one", step("one")), ("last", step("last"))
_ROOM = 64 * 1024 * 1024


def _search(state: State, config: RunnableConfig) -> State:
    """Two to the power of sixty steps of one C function that never lets the interpreter go."""
    enter("search", _run_id(config))
    re.match(r"(a+)+$", "a" * 60 + "b")
    return {}


async def _block(state: State, config: RunnableConfig) -> State:
    """Stands in C on the event loop, with the interpreter free for other threads."""
    enter("block", _run_id(config))
    select.select([], [], [], 3600)
    return {}


async def _hold(state: State, config: RunnableConfig) -> State:
    """Stands in Python on the event loop, at a gate."""
    enter("hold", _run_id(config))
    return {}


def _block_thread(state: State, config: RunnableConfig) -> State:
    """Stands in C in a thread of its own, when it is the first to do so."""
    enter("stand", _run_id(config))
    if Trail.of_process().steps(_run_id(config)).count("stand") == 1:
        select.select([], [], [], 3600)
    return {}


def _starve(state: State, config: RunnableConfig) -> State:
    """Asks for more memory than its process may have; the limit is the process's, the machine survives."""
    enter("starve", _run_id(config))
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM, hard))
    try:
        kept = []
        while True:
            kept.append(bytearray(_ROOM // 4))
    finally:
        del kept
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _beat_until_open(state: State, config: RunnableConfig) -> State:
    """Reports for as long as the gate "beating" is closed."""
    run_id, beats = _run_id(config), 0
    enter("beat", run_id)
    while gates_of_process().is_closed("beating", run_id):
        beats += 1
        heartbeat({"beats": beats})
        time.sleep(0.05)
    return {}


def _refused(state: State, config: RunnableConfig) -> State:
    """The provider is busy for an hour, the first time it is asked."""
    enter("ask", _run_id(config))
    if Trail.of_process().steps(_run_id(config)).count("ask") == 1:
        request = httpx.Request("POST", "https://api.example.org")
        busy = httpx.Response(429, headers={"Retry-After": "3600"}, request=request)
        raise httpx.HTTPStatusError("busy", request=request, response=busy)
    return {}


def _second_long(name: str) -> Node:
    def node(state: State, config: RunnableConfig) -> State:
        enter(name, _run_id(config))
        time.sleep(1)
        return {}

    return node


searching = chain(_FIRST, ("search", _search), _LAST)
blocking = chain(_FIRST, ("block", _block), _LAST)
standing = chain(_FIRST, ("stand", _block_thread), _LAST)
holding = chain(_FIRST, ("hold", _hold), _LAST)
starving = chain(_FIRST, ("starve", _starve), _LAST)
beating = chain(_FIRST, ("beat", _beat_until_open), _LAST)
# Pays, and then kills its process as often as `cents` says.
paid_killing = chain(("pay", paying(pay)), ("kill", _kill), _LAST)
refused = chain(_FIRST, ("ask", _refused), _LAST)
fifty = chain(*((f"s{n}", _second_long(f"s{n}")) for n in range(1, 51)))
