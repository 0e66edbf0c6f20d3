"""Runs whose process died in a call: nobody knows whether it happened."""

from __future__ import annotations

from typing import Any

import celegraph
from celegraph import EffectCall, effect
from celegraph.errors import EffectSkipped
from celegraph.testing.driver import Driven, Driver
from tests.support.driving import taken_over
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain


def dying_payer(
    log: Log, tool: str = "pay", *, acts_first: bool = True, cancelled: str | None = None, **options: Any
) -> Graph:
    """The first call dies, after or before the provider acted; later ones return a receipt.

    `cancelled`: meanwhile somebody has cancelled the run, for this reason.
    """

    @effect(tool, **options)
    def pay(call: EffectCall, order: str) -> str:
        log(f"call {call.attempt}")
        if acts_first or log.count("died"):
            log(f"act {call.key}")
        if not log.count("died"):
            log("died")
            if cancelled is not None:
                celegraph.cancel_run(call.run_id, reason=cancelled)
            die()
        return f"receipt {call.attempt}"

    def node(state: State) -> State:
        try:
            return {"seen": [pay("o-1")]}
        except EffectSkipped as skipped:
            return {"seen": [f"skipped by {skipped.by}: {skipped.reason}"]}

    return chain(node)


def in_doubt(drive: Driver, log: Log, run_id: str, **options: Any) -> Driven:
    """The run after the death in the call, gone on as far as it goes."""
    process_dies(lambda: drive(dying_payer(log, **options), {}, run_id=run_id))
    return taken_over(drive(dying_payer(log, **options), {}, run_id=run_id, sleeps=False))


def distinct_acts(log: Log) -> int:
    """What a provider that honours keys has done."""
    return len({line for line in log.lines if line.startswith("act ")})
