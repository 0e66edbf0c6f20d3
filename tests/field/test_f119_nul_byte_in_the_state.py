"""F119: NUL byte in the state."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import interrupt

from celegraph import EffectCall, effect
from celegraph.errors import InvalidValue
from celegraph.tasks.decide import decide
from celegraph.tasks.explain import explain_run
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driver
from tests.support.driving import sweep
from tests.support.log import Log
from tests.support.shapes import State, chain


def test_f119_nul_byte_in_the_state(lonely_drive: Driver, log: Log) -> None:
    @effect("pay")
    def pay(call: EffectCall) -> str:
        log("act")
        return "receipt"

    def node(state: State) -> State:
        return {"order": f"{pay()}\0"}

    run = lonely_drive(chain(node), {})
    for _ in range(3):
        sweep(run, started=True)
        run.resume()

    assert log.count("act") == 1
    assert run.status == "failed"
    with using(run.installation):
        assert "state.order: contains a NUL character" in explain_run(run.run_id).sentence


def test_f119_the_same_byte_in_an_answer_and_in_a_question(drive: Driver) -> None:
    def ask(state: State) -> Any:
        return {"seen": [interrupt({"text": "go?\0"})]}

    run = drive(chain(ask), {})
    question = run.approvals[0]
    with using(run.installation), pytest.raises(InvalidValue, match=r"value\.note: contains a NUL"):
        decide(question.approval_id, "answer", by="ana", value={"note": "fine\0"})

    assert question.prompt == '{"text": "go?\ufffd"}'
    assert run.resume([("answer", {"note": "fine"})]).output["seen"] == [{"note": "fine"}]
