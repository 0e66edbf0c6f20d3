"""One call of an effect: made once, recorded, given back; and the ways it is refused."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

import celegraph
from celegraph import EffectCall, effect
from celegraph.agent.attempt import attempt_here
from celegraph.errors import AttemptOver, EffectMisuse, EffectOutsideRun
from celegraph.ledger.effect_row import Effect
from celegraph.testing.driver import Driver
from tests.support.driving import kinds, taken_over
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import State, chain, parallel


def test_an_effect_is_claimed_called_recorded_and_its_result_given_to_the_node(
    drive: Driver, log: Log
) -> None:
    @effect("refund")
    def refund(call: EffectCall, order: str, cents: int = 100) -> str:
        call.provider_ref = "re_1"
        log(f"{call.key} {call.tool} {call.attempt} {order} {cents}")
        return f"receipt of {order}"

    def node(state: State) -> State:
        return {"seen": [refund("o-1")]}

    run = drive(chain(node), {})

    (act,) = run.effects
    assert log.lines == [f"{act.key} refund 1 o-1 100"]
    assert run.output["seen"] == ["receipt of o-1"]
    assert (act.tool, act.args, act.status) == ("refund", {"order": "o-1", "cents": 100}, "sent")
    assert (act.result, act.provider_ref, act.attempts) == ("receipt of o-1", "re_1", 1)
    assert [k for k in kinds(run) if "effect" in k] == ["effect reserved", "effect sent"]


def test_an_async_effect_is_awaited_in_an_async_node(drive: Driver, log: Log) -> None:
    @effect("refund")
    async def refund(call: EffectCall, order: str) -> str:
        await asyncio.sleep(0)
        log(order)
        return "receipt"

    async def node(state: State) -> State:
        return {"seen": [await refund("o-1")]}

    assert drive(chain(node), {}).output["seen"] == ["receipt"]
    assert log.lines == ["o-1"]


def test_a_plain_effect_on_the_event_loop_is_refused_and_named_async_def(drive: Driver, log: Log) -> None:
    @effect("refund")
    def refund(call: EffectCall) -> None:
        log("act")

    async def node(state: State) -> None:
        refund()

    run = drive(chain(node), {})

    assert run.status == "failed"
    assert "'async def'" in run.run.error["message"]
    assert (log.lines, run.effects) == ([], [])


def test_an_async_effect_outside_the_runs_loop_is_refused_and_told_to_be_awaited(
    drive: Driver, log: Log
) -> None:
    @effect("refund")
    async def refund(call: EffectCall) -> None:
        log("act")

    def node(state: State) -> None:
        asyncio.run(refund())

    run = drive(chain(node), {})

    assert "await it in an 'async def' node" in run.run.error["message"]
    assert (log.lines, run.effects) == ([], [])


def test_effects_and_approvals_outside_a_run_are_refused_with_the_remedy(log: Log) -> None:
    @effect("refund")
    def refund(call: EffectCall) -> None:
        log("act")

    with pytest.raises(EffectOutsideRun, match="drive fixture"):
        refund()
    with pytest.raises(EffectOutsideRun, match="start_run"):
        celegraph.ask_approval(prompt="go?")
    assert log.lines == []


@pytest.mark.parametrize(
    ("declare", "problem"),
    [
        (lambda: effect("x", in_doubt="reconcile"), "needs lookup="),
        (lambda: effect("x", lookup=lambda call: celegraph.Unknown()), "only with in_doubt='reconcile'"),
        (lambda: effect(""), "1 to 100 printable"),
        (lambda: effect("x")(lambda: None), "must be the EffectCall"),  # type: ignore[arg-type,misc]
        (lambda: effect("x")(lambda call, *a: None), "no stable names"),
        (lambda: effect("x")(lambda call, a, /: None), "positional-only"),
    ],
)
def test_an_effect_declared_wrongly_says_so_at_once(declare: Any, problem: str) -> None:
    with pytest.raises(EffectMisuse, match=problem):
        declare()


STORED: list[object] = [
    None, [], "text", {"id": "re_1"}, 1, 1.5, 2.0**60, -0.0, Decimal("10.00"), UUID(int=1), b"\xff",
    datetime(2026, 3, 29, 2, 30, tzinfo=UTC), date(2026, 3, 29), timedelta(hours=2), {"$tag": ["$x"]},
]  # fmt: skip


@pytest.mark.parametrize("result", STORED, ids=repr)
def test_f40_replay_path_never_exercised_the_node_gets_the_first_value_again(
    drive: Driver, log: Log, result: object
) -> None:
    """F40: the second pass gets exactly what the first pass got, for every shape of result."""

    @effect("refund")
    def refund(call: EffectCall) -> object:
        log("act")
        return result

    passes: list[object] = []

    def node(state: State) -> None:
        passes.append(refund())
        if len(passes) == 1:
            raise ConnectionResetError("after the effect")

    run = drive(chain(node), {})

    assert run.status == "finished"
    assert log.lines == ["act"]
    assert [repr(p) for p in passes] == [repr(result)] * 2
    assert "effect deduplicated" in kinds(run)


def test_what_comes_back_simpler_is_simpler_on_the_first_pass_too(drive: Driver) -> None:
    @effect("refund")
    def refund(call: EffectCall) -> Any:
        return {"z": (1, 2), "a": 1}

    def node(state: State) -> State:
        return {"seen": [refund()]}

    (value,) = drive(chain(node), {}).output["seen"]
    assert value == {"a": 1, "z": [1, 2]}


def test_a_result_that_cannot_be_stored_is_recorded_as_done_before_it_is_reported(
    drive: Driver, log: Log
) -> None:
    @effect("refund")
    def refund(call: EffectCall) -> object:
        log("act")
        call.provider_ref = "re_1"
        return object()

    def node(state: State) -> None:
        refund()

    run = drive(chain(node), {})

    assert run.status == "failed"
    assert "result" in run.run.error["message"]
    (act,) = run.effects
    assert (act.status, act.provider_ref, act.result) == ("sent", "re_1", None)
    assert log.lines == ["act"]


def test_arguments_and_results_beyond_the_limit_are_refused(drive: Driver, log: Log) -> None:
    @effect("store")
    def store(call: EffectCall, body: str) -> str:
        log("act")
        return body * 3

    def node(state: State) -> None:
        store("x" * state["n"])

    too_much = drive(chain(node), {"n": 5000}, settings={"max_value_bytes": 4096})
    assert "max_value_bytes" in too_much.run.error["message"]
    assert (log.lines, too_much.effects) == ([], [])

    too_large_back = drive(chain(node), {"n": 2000}, settings={"max_value_bytes": 4096})
    assert "max_value_bytes" in too_large_back.run.error["message"]
    assert log.lines == ["act"]
    assert [a.status for a in too_large_back.effects] == ["sent"]


def test_a_read_only_run_performs_no_effect(drive: Driver, log: Log) -> None:
    @effect("refund")
    def refund(call: EffectCall) -> None:
        log("act")

    def node(state: State) -> None:
        refund()

    run = drive(chain(node), {}, read_only=True)

    assert run.status == "failed"
    assert "EffectsDisabled" in run.run.error["type"]
    assert (log.lines, run.effects) == ([], [])


def test_a_thread_left_over_from_an_ended_attempt_may_not_act(drive: Driver, log: Log) -> None:
    @effect("refund")
    def refund(call: EffectCall) -> None:
        log("act")

    ended = threading.Event()
    found: list[BaseException] = []

    def late() -> None:
        ended.wait(10)
        try:
            refund()
        except BaseException as error:
            found.append(error)

    threads: list[threading.Thread] = []

    def node(state: State) -> None:
        thread = threading.Thread(target=contextvars.copy_context().run, args=(late,), daemon=True)
        threads.append(thread)
        thread.start()

    run = drive(chain(node), {})
    ended.set()
    threads[0].join(5)

    assert run.status == "finished"
    assert [type(e) for e in found] == [AttemptOver]
    assert (log.lines, run.effects) == ([], [])


def test_a_call_at_work_when_a_sibling_fails_is_finished_and_recorded(drive: Driver, log: Log) -> None:
    from tests.support.shapes import parallel

    started = asyncio.Event()

    @effect("refund")
    async def refund(call: EffectCall) -> str:
        started.set()
        await asyncio.sleep(0.05)
        log("act")
        return "receipt"

    async def payer(state: State) -> State:
        return {"seen": [await refund()]}

    async def failing(state: State) -> None:
        if not log.count("failing"):
            log("failing")
            await started.wait()
            raise ConnectionResetError("sibling")

    run = drive(parallel(payer, failing), {})

    assert run.output["seen"] == ["receipt"]
    assert log.count("act") == 1
    assert [(a.status, a.attempts) for a in run.effects] == [("sent", 1)]


def test_an_effect_recorded_before_the_process_died_is_not_performed_again(drive: Driver, log: Log) -> None:
    @effect("refund")
    def refund(call: EffectCall) -> str:
        log("act")
        return "receipt"

    def node(state: State) -> State:
        receipt = refund()
        log("node")
        if log.count("node") == 1:
            die()
        return {"seen": [receipt]}

    process_dies(lambda: drive(chain(node), {}, run_id="dies-after-record"))
    run = taken_over(drive(chain(node), {}, run_id="dies-after-record"))

    assert run.output["seen"] == ["receipt"]
    assert log.lines == ["act", "node", "node"]


def test_a_call_in_a_sibling_s_thread_is_recorded_although_the_other_branch_has_failed(
    drive: Driver, log: Log
) -> None:
    failing = threading.Event()

    @effect("slow")
    def slow(call: EffectCall) -> str:
        failing.set()
        # Longer than the end of an attempt waits for threads that call nobody; a real wait, because how
        # long the end waits is what is tested.
        time.sleep(6)
        log("act")
        return "done"

    def paying(state: State) -> State:
        return {"seen": [slow()]}

    def breaking(state: State) -> State:
        failing.wait(30)
        if log.count("broken") == 0:
            log("broken")
            raise ConnectionResetError("the first try")
        return {"seen": ["broken"]}

    run = drive(parallel(paying, breaking), {})

    assert run.status == "finished", run.run.reason
    assert log.count("act") == 1
    assert run.effects[0].attempts == 1


@pytest.mark.parametrize("ref", [4711, "a\0b", "\udcff", "x" * 10_000, b"id"])
def test_a_call_is_recorded_whatever_its_author_takes_for_the_providers_id(drive: Driver, ref: Any) -> None:
    @effect("pay")
    def pay(call: EffectCall) -> str:
        call.provider_ref = ref
        return "receipt"

    run = drive(chain(lambda state: {"seen": [pay()]}), {})

    assert run.output["seen"] == ["receipt"]
    assert [e.status for e in run.effects] == ["sent"]


def test_a_call_whose_result_fails_while_it_is_read_is_recorded_all_the_same(drive: Driver, log: Log) -> None:
    class Broken(dict[str, str]):
        def items(self) -> Any:
            raise RuntimeError("the session is closed")

    @effect("pay", in_doubt="retry")
    def pay(call: EffectCall) -> Any:
        log("act")
        return Broken(id="r-1")

    run = drive(chain(lambda state: {"seen": [pay()]}), {})

    assert run.status == "failed"
    assert "RuntimeError" in run.run.error["message"]
    assert [e.status for e in run.effects] == ["sent"]
    assert log.lines == ["act"]


def test_an_error_whose_message_no_database_takes_is_kept_without_the_bad_characters(
    drive: Driver, log: Log
) -> None:
    @effect("pay")
    def pay(call: EffectCall) -> None:
        log("act")
        raise ConnectionRefusedError("no such file: \udcff\0")

    run = drive(chain(lambda state: pay()), {})

    assert [(e.status, e.error["message"]) for e in run.effects] == [("failed", "no such file: \ufffd\ufffd")]


@pytest.mark.parametrize("when", ["at once", "a moment later"])
def test_a_call_that_cancels_its_own_task_and_returns_has_its_result_recorded_and_used(
    drive: Driver, log: Log, when: str
) -> None:
    @effect("pay")
    async def pay(call: EffectCall) -> str:
        log("act")
        task = asyncio.current_task()
        assert task is not None
        if when == "at once":
            task.cancel()
        else:
            asyncio.get_running_loop().call_soon(task.cancel)
        return "receipt"

    async def node(state: State) -> State:
        return {"seen": [await pay()]}

    run = drive(chain(node), {})

    assert [(e.status, e.result) for e in run.effects] == [("sent", "receipt")]
    assert run.output["seen"] == ["receipt"]
    assert log.lines == ["act"]


def test_what_is_known_of_a_claimed_call_is_what_the_database_has(drive: Driver) -> None:
    known: list[Effect | None] = []
    stored: list[Effect] = []

    @effect("pay")
    def pay(call: EffectCall, order: str) -> str:
        attempt = attempt_here()
        assert attempt is not None
        known.extend(row for row in attempt.effects if row.idempotency_key == call.key)
        stored.append(celegraph.get_effect(call.key))
        return "receipt"

    drive(chain(lambda state: {"seen": [pay("o-1")]}), {})

    # What is measured anew by every reading, and only there.
    plain = [replace(row, doubt_passed=None, doubt_in_s=None, age_s=None) for row in stored]
    assert known == plain
