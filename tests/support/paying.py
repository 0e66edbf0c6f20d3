"""An agent that pays at the fake provider, for runs driven in the test's own process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import httpx

from celegraph import EffectCall, effect
from celegraph.agent.effect import EffectFunction
from celegraph.contrib.providers import http
from tests.support.dying import die
from tests.support.provider import FakeProvider
from tests.support.shapes import Graph, State, chain
from tests.support.waiting import eventually

# Above what a loaded machine needs for an answer on the loopback, below anybody's patience.
_TIMEOUT = 1.0


def pay_effect(provider: FakeProvider, **options: Any) -> EffectFunction[[dict[str, Any]], str]:
    """`pay(body)` returns the provider's reference."""
    options = {"in_doubt": "retry", **options}

    @effect("pay", **options)
    def pay(call: EffectCall, body: dict[str, Any]) -> str:
        with httpx.Client(base_url=provider.url, timeout=_TIMEOUT) as client:
            return str(http.post(call, client, "/pay", json=body)["id"])

    return pay


def paying(provider: FakeProvider, **options: Any) -> Graph:
    """One node, one payment."""
    pay = pay_effect(provider, **options)

    def node(state: State) -> State:
        return {"seen": [pay({"order": "o-1"})]}

    return chain(node)


def die_once(fact: Callable[[], object]) -> None:
    """This process dies as soon as `fact()` is true, whatever it is doing then."""

    def watch() -> None:
        eventually(fact)
        die()

    threading.Thread(target=watch, daemon=True).start()
