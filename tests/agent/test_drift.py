"""A re-run that wants other arguments than were recorded: never a silent second call."""

from __future__ import annotations

from typing import Any

import pytest

from celegraph import EffectCall, effect
from celegraph.errors import EffectDrift
from celegraph.testing.driver import Driven, Driver
from tests.support.driving import connection, event
from tests.support.log import Log
from tests.support.shapes import State, chain


def _drifting(drive: Driver, log: Log, decisions: list[Any], *, on_drift: Any = None) -> Driven:
    @effect("pay", on_drift=on_drift)
    def pay(call: EffectCall, memo: str) -> str:
        log(f"act {memo}")
        return f"paid {memo}"

    def node(state: State) -> State:
        log("node")
        receipt = pay("first words" if log.count("node") == 1 else "other words")
        if log.count("node") == 1:
            raise ConnectionResetError("after the effect")
        return {"seen": [receipt]}

    return drive(chain(node), {}, decisions)


def _acts(log: Log) -> list[str]:
    return [line for line in log.lines if line.startswith("act")]


def test_a_counted_call_with_other_arguments_waits_for_a_person_who_sees_both(
    drive: Driver, log: Log
) -> None:
    run = _drifting(drive, log, [])

    assert run.status == "waiting"
    question = run.approvals[0]
    assert question.kind == "drift"
    assert question.args == {"recorded": {"memo": "first words"}, "now": {"memo": "other words"}}
    assert _acts(log) == ["act first words"]


def test_an_approved_drift_makes_the_new_call_once_beside_the_recorded_one(drive: Driver, log: Log) -> None:
    run = _drifting(drive, log, ["approve"])

    assert run.output["seen"] == ["paid other words"]
    assert _acts(log) == ["act first words", "act other words"]


def test_a_rejected_drift_keeps_the_recorded_call_and_its_result(drive: Driver, log: Log) -> None:
    run = _drifting(drive, log, ["reject"])

    assert run.output["seen"] == ["paid first words"]
    assert _acts(log) == ["act first words"]


def test_on_drift_keep_gives_the_recorded_result_and_leaves_both_sides_in_the_trace(
    drive: Driver, log: Log
) -> None:
    run = _drifting(drive, log, [], on_drift="keep")

    assert run.output["seen"] == ["paid first words"]
    assert _acts(log) == ["act first words"]
    drift = event(run, "effect drifted")
    assert (drift["recorded"], drift["now"]) == ({"memo": "first words"}, {"memo": "other words"})


def test_on_drift_fail_ends_the_run_without_a_second_call(drive: Driver, log: Log) -> None:
    run = _drifting(drive, log, [], on_drift="fail")

    assert run.status == "failed"
    assert run.run.error["type"].endswith(EffectDrift.__name__)
    assert _acts(log) == ["act first words"]


def test_what_was_fixed_at_the_claim_is_what_is_sent_again(drive: Driver, log: Log) -> None:
    @effect("pay", in_doubt="retry")
    def pay(call: EffectCall, cents: float) -> str:
        log(f"act {call.key} {cents!r}")
        if call.attempt == 1:
            raise TimeoutError("no answer")
        return "paid"

    def node(state: State) -> State:
        log("node")
        # Equal by value, so the same call; but not the same bytes for a provider that compares bodies.
        return {"seen": [pay(5 if log.count("node") == 1 else 5.0)]}

    run = drive(chain(node), {})

    assert run.status == "finished"
    first, second = _acts(log)
    assert first == second


@pytest.mark.parametrize("wording", ["Refund: order 17", "refund of order seventeen"])
def test_f16_the_model_words_its_arguments_differently_on_the_re_run(
    drive: Driver, log: Log, wording: str
) -> None:
    """F16: The model words its arguments differently on the re-run."""

    @effect("pay", in_doubt="retry")
    def pay(call: EffectCall, memo: str) -> str:
        log(f"act {memo}")
        return call.key

    def node(state: State) -> State:
        log("node")
        receipt = pay.slot("refund")("Refund for order 17" if log.count("node") == 1 else wording)
        if log.count("node") == 1:
            raise ConnectionResetError("after the effect")
        return {"seen": [receipt]}

    run = drive(chain(node), {})

    assert run.status == "finished"
    assert _acts(log) == ["act Refund for order 17"]
    assert event(run, "effect drifted")["now"] == {"memo": wording}


def test_a_drift_whose_question_was_closed_unanswered_is_asked_again(drive: Driver, log: Log) -> None:
    run = _drifting(drive, log, [])
    with connection(run) as conn:  # as when the run fails in another branch and a person retries it
        conn.execute(
            "UPDATE approvals SET status = 'cancelled', decided_at = ledger_now() WHERE run_id = %s",
            (run.run_id,),
        )

    run.resume(["approve"])

    assert [a.status for a in run.approvals] == ["cancelled", "approved"]
    assert _acts(log) == ["act first words", "act other words"]
