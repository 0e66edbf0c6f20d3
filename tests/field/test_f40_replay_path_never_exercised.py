"""F40: the recorded result comes back exactly as the first pass got it, whatever its shape."""

from __future__ import annotations

import json

import httpx
import pytest

from celegraph import EffectCall, effect
from celegraph.contrib.providers import http
from celegraph.testing.driver import Driver
from tests.support.driving import taken_over
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.provider import FakeProvider
from tests.support.shapes import Graph, State, chain


@pytest.mark.parametrize("result", [None, [], "text", {"id": "re_1"}], ids=repr)
def test_a_death_between_the_record_and_the_checkpoint_changes_no_result(
    drive: Driver, provider: FakeProvider, log: Log, result: object
) -> None:
    def graph() -> Graph:
        @effect("pay")
        def pay(call: EffectCall) -> object:
            with httpx.Client(base_url=provider.url) as client:
                http.post(call, client, "/pay", json={})
            return result

        def node(state: State) -> State:
            value = pay()
            log(json.dumps(value))
            if len(log.lines) == 1:
                die()
            return {"seen": [value]}

        return chain(node)

    run_id = f"replay-{json.dumps(result)}"
    process_dies(lambda: drive(graph(), {}, run_id=run_id))
    run = taken_over(drive(graph(), {}, run_id=run_id))

    assert run.output["seen"] == [result]
    assert log.lines == [json.dumps(result)] * 2
    assert len(provider.acts()) == 1
