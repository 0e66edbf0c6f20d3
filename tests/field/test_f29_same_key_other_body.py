"""F29: a retry with other fields is refused by the provider for good; the body is fixed at the claim."""

from __future__ import annotations

import httpx

from celegraph import EffectCall, effect
from celegraph.contrib.providers import http
from celegraph.testing.driver import Driver
from tests.support.log import Log
from tests.support.paying import pay_effect
from tests.support.provider import FakeProvider
from tests.support.shapes import State, chain


def test_a_node_that_counts_its_attempts_into_the_body_resends_the_first_body(
    drive: Driver, provider: FakeProvider, log: Log
) -> None:
    provider.switch(acts_then_resets=1)
    pay = pay_effect(provider)

    def node(state: State) -> State:
        log("node")
        body = {"order": "o-1", "metadata": {"attempt": log.count("node"), "by": "agent"}}
        return {"seen": [pay.slot("order")(body)]}

    run = drive(chain(node), {})

    (act,) = provider.acts()
    assert (run.status, run.output["seen"]) == ("finished", [act.ref])
    assert act.body["metadata"]["attempt"] == 1
    assert log.count("node") >= 2


def test_an_effect_that_changes_its_own_body_is_not_refused_for_ever_but_asked_about(
    drive: Driver, provider: FakeProvider
) -> None:
    provider.switch(acts_then_resets=1)

    @effect("pay", in_doubt="retry")
    def pay(call: EffectCall) -> str:
        with httpx.Client(base_url=provider.url, timeout=1) as client:
            return str(http.post(call, client, "/pay", json={"attempt": call.attempt})["id"])

    def node(state: State) -> State:
        return {"seen": [pay()]}

    run = drive(chain(node), {})

    assert len(provider.acts()) == 1
    assert (run.status, [a.kind for a in run.approvals]) == ("waiting", ["doubt"])

    run.resume([("answer", "happened")])

    assert run.status == "finished"
    assert len(provider.acts()) == 1
