"""Nobody knows whether the call happened: each policy's answer, and when it is believed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import celegraph
from celegraph import EffectCall, Happened, NotHappened, Unknown, effect
from celegraph.agent.attempt import Attempt
from celegraph.agent.declaration import Found
from celegraph.errors import EffectNotDone, NotResolvable
from celegraph.ledger.leases import Settled
from celegraph.ledger.outcomes import Outcome, Waiting
from celegraph.tasks import advance
from celegraph.tasks.decide import decide
from celegraph.tasks.dispatch import reconcile
from celegraph.tasks.installation import using
from celegraph.tasks.resolve import resolve_effect
from celegraph.tasks.settle import settle
from celegraph.testing.driver import Driven, Driver
from tests.support.cancelling import VICTIMS, cancelled
from tests.support.doubtful import distinct_acts, dying_payer, in_doubt
from tests.support.driving import connection, kinds, sweep, taken_over
from tests.support.dying import process_dies
from tests.support.log import Log
from tests.support.shapes import State, chain


def ends_in_one_receipt(run: Driven, log: Log, *, calls: int) -> None:
    """The last of `calls` calls with one key returned; what the others did was in doubt."""
    assert run.output["seen"] == ["receipt"]
    assert distinct_acts(log) == 1
    assert [(a.status, a.attempts) for a in run.effects] == [("sent", calls)]
    assert kinds(run).count("effect in doubt") == calls - 1


def test_retry_calls_again_with_the_same_key_but_not_before_the_horizon(drive: Driver, log: Log) -> None:
    run = in_doubt(drive, log, "doubt-retry", in_doubt="retry")

    assert run.status == "ready"  # asleep: the first call may still be under way
    assert log.count("call 2") == 0

    run.pass_time("2m").resume()

    assert run.output["seen"] == ["receipt 2"]
    assert distinct_acts(log) == 1
    assert [(a.status, a.attempts) for a in run.effects] == [("sent", 2)]


def test_retry_beyond_the_providers_memory_of_the_key_asks_a_person(drive: Driver, log: Log) -> None:
    run = in_doubt(drive, log, "doubt-ttl", in_doubt="retry", key_ttl="1h")

    run.pass_time("2h").resume()

    assert run.status == "waiting"
    assert log.count("call 2") == 0
    assert run.approvals[0].kind == "doubt"


@pytest.mark.parametrize("error", [TimeoutError("read"), ConnectionResetError("reset"), ValueError("body")])
def test_an_error_that_proves_nothing_is_a_doubt_and_retried_with_the_same_key(
    drive: Driver, log: Log, error: Exception
) -> None:
    @effect("pay", in_doubt="retry")
    def pay(call: EffectCall) -> str:
        log(f"act {call.key}")
        if call.attempt < 3:
            raise error
        return "receipt"

    def node(state: State) -> State:
        return {"seen": [pay()]}

    ends_in_one_receipt(drive(chain(node), {}), log, calls=3)


@pytest.mark.parametrize("whom", VICTIMS)
def test_a_call_that_ends_in_a_cancellation_of_its_own_making_is_a_doubt_and_retried(
    drive: Driver, log: Log, whom: str
) -> None:
    @effect("pay", in_doubt="retry")
    async def pay(call: EffectCall) -> str:
        log(f"act {call.key}")
        if call.attempt == 1:
            await cancelled(whom)
        return "receipt"

    async def node(state: State) -> State:
        return {"seen": [await pay()]}

    ends_in_one_receipt(drive(chain(node), {}), log, calls=2)


@pytest.mark.parametrize("whom", VICTIMS)
def test_a_person_is_asked_about_a_call_that_has_cancelled_itself(drive: Driver, log: Log, whom: str) -> None:
    @effect("pay")
    async def pay(call: EffectCall) -> None:
        log("act")
        await cancelled(whom)

    async def node(state: State) -> State:
        await pay()
        return {}

    run = drive(chain(node), {})

    assert run.status == "waiting"
    assert [a.kind for a in run.approvals] == ["doubt"]
    assert log.lines == ["act"]


def test_an_error_beside_a_cancellation_that_is_still_on_its_way_is_a_doubt(drive: Driver, log: Log) -> None:
    @effect("pay", in_doubt="retry")
    async def pay(call: EffectCall) -> str:
        log(f"act {call.key}")
        if call.attempt > 1:
            return "receipt"
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        raise ConnectionResetError("after the act")

    async def node(state: State) -> State:
        return {"seen": [await pay()]}

    ends_in_one_receipt(drive(chain(node), {}), log, calls=2)


def test_a_call_and_a_look_up_that_both_cancel_themselves_leave_a_doubt_to_be_looked_up_again(
    drive: Driver, log: Log
) -> None:
    async def lookup(call: EffectCall) -> Found:
        log("look up")
        if log.count("look up") == 1:
            await cancelled("itself")
        return Happened("receipt found")

    @effect("pay", in_doubt="reconcile", lookup=lookup)
    async def pay(call: EffectCall) -> str:
        log("act")
        await cancelled("itself")
        return "receipt"

    async def node(state: State) -> State:
        return {"seen": [await pay()]}

    run = drive(chain(node), {}, sleeps=False)
    assert run.status == "ready"

    run.pass_time("2m").resume()

    assert run.output["seen"] == ["receipt found"]
    assert log.lines == ["act", "look up", "look up"]


def test_a_call_that_wants_to_end_the_process_leaves_its_doubt_to_a_person(
    lonely_drive: Driver, log: Log
) -> None:
    @effect("pay and exit")
    def pay(call: EffectCall) -> None:
        log("act")
        raise SystemExit(3)

    run = lonely_drive(chain(lambda state: pay()), {})

    assert (run.status, [a.status for a in run.effects]) == ("failed", ["pending"])
    run.pass_time("2m")
    assert reconcile(run.installation).asked == 1
    assert [a.kind for a in run.approvals] == ["doubt"]
    assert log.lines == ["act"]


def test_a_plain_call_whose_inner_loop_was_cancelled_is_a_doubt(drive: Driver, log: Log) -> None:
    @effect("pay")
    def pay(call: EffectCall) -> None:
        log("act")
        asyncio.run(cancelled("a task of its own"))

    run = drive(chain(lambda state: pay()), {})

    assert run.status == "waiting"
    assert [a.kind for a in run.approvals] == ["doubt"]
    assert log.lines == ["act"]


def test_an_async_call_beyond_its_timeout_is_a_doubt(drive: Driver, log: Log) -> None:
    @effect("pay", timeout=0.05)
    async def pay(call: EffectCall) -> None:
        log("act")
        await asyncio.sleep(30)

    async def node(state: State) -> None:
        await pay()

    run = drive(chain(node), {})

    assert run.status == "waiting"
    assert [a.kind for a in run.approvals] == ["doubt"]
    assert log.lines == ["act"]


@pytest.mark.parametrize("wrapped", [False, True])
def test_f31_retry_policy_that_cannot_tell_not_sent_from_unknown(
    drive: Driver, log: Log, wrapped: bool
) -> None:
    """F31: connect refused twice, then fine: one act, three attempts, nobody is asked."""

    @effect("pay")
    def pay(call: EffectCall) -> str:
        if call.attempt < 3:
            refused = ConnectionRefusedError("nobody listens")
            if wrapped:
                raise OSError("request failed") from refused
            raise refused
        log("act")
        return "receipt"

    def node(state: State) -> State:
        return {"seen": [pay()]}

    retry = celegraph.RetryPolicy(retry_on=("builtins.OSError",))
    run = drive(celegraph.Agent(graph=chain(node), retry=retry), {})

    assert run.output["seen"] == ["receipt"]
    assert log.lines == ["act"]
    assert [(a.status, a.attempts) for a in run.effects] == [("sent", 3)]
    assert run.approvals == []


def test_not_done_by_the_authors_own_word_may_be_called_again(drive: Driver, log: Log) -> None:
    class Busy(Exception):
        pass

    @effect("pay", not_done=(Busy,))
    def pay(call: EffectCall) -> str:
        if call.attempt == 1:
            raise Busy
        if call.attempt == 2:
            raise EffectNotDone("refused before anything happened")
        log("act")
        return "receipt"

    def node(state: State) -> State:
        for _ in range(3):
            try:
                return {"seen": [pay.slot("one")()]}
            except (Busy, EffectNotDone):
                log("not done")
        return {}

    run = drive(chain(node), {})

    assert log.lines == ["not done", "not done", "act"]
    assert [(a.status, a.attempts) for a in run.effects] == [("sent", 3)]


@pytest.mark.parametrize("later", [ConnectionRefusedError("down"), EffectNotDone("422: other body")])
def test_a_later_calls_proof_says_nothing_of_an_earlier_call_in_doubt(
    drive: Driver, log: Log, later: Exception
) -> None:
    @effect("pay", in_doubt="retry", key_ttl="24h")
    def pay(call: EffectCall) -> str:
        log(f"act {call.key}" if call.attempt == 1 else f"call {call.attempt}")
        if call.attempt == 4:
            return "receipt"
        raise ConnectionResetError("after the act") if call.attempt == 1 else later

    def node(state: State) -> State:
        return {"seen": [pay()]}

    run = drive(chain(node), {}, sleeps=False)
    run.pass_time("2m").resume()

    # Not failed: a failed effect would be called again also when the provider has forgotten the key.
    assert [(a.status, a.attempts) for a in run.effects] == [("pending", 2)]

    run.pass_time("25h").resume()

    assert run.status == "waiting"
    assert [a.kind for a in run.approvals] == ["doubt"]
    assert log.lines[1:] == ["call 2"]


# -- reconcile -------------------------------------------------------------------------------------


def test_a_look_up_that_finds_the_act_is_believed_at_once_and_nothing_is_called(
    drive: Driver, log: Log
) -> None:
    def lookup(call: EffectCall, order: str) -> Found:
        log(f"look up {order}")
        return Happened("receipt found", ref="re_1")

    run = in_doubt(drive, log, "look-happened", in_doubt="reconcile", lookup=lookup)

    assert run.output["seen"] == ["receipt found"]
    assert log.count("look up o-1") == 1
    assert log.count("call 2") == 0
    assert [(a.status, a.provider_ref, a.attempts) for a in run.effects] == [("sent", "re_1", 1)]


def test_a_look_up_that_finds_nothing_is_believed_only_past_the_horizon(drive: Driver, log: Log) -> None:
    def lookup(call: EffectCall, order: str) -> Found:
        log("look up")
        return NotHappened()

    run = in_doubt(drive, log, "look-not", acts_first=False, in_doubt="reconcile", lookup=lookup)

    assert run.status == "ready"
    assert (log.count("look up"), log.count("call 2")) == (1, 0)

    run.pass_time("2m").resume()

    assert run.output["seen"] == ["receipt 2"]
    assert distinct_acts(log) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_a_look_up_that_cannot_tell_is_repeated_and_then_a_person_is_asked(
    drive: Driver, log: Log, fails: bool
) -> None:
    def lookup(call: EffectCall, order: str) -> Found:
        log("look up")
        if fails:
            raise ConnectionResetError("provider is down")
        return Unknown("provider is down")

    run = in_doubt(drive, log, f"look-unknown-{fails}", in_doubt="reconcile", lookup=lookup)
    assert run.status == "ready"

    run.pass_time("2m").resume()
    assert run.status == "ready"
    assert log.count("look up") == 2

    run.pass_time("30m").resume()
    assert run.status == "waiting"
    assert [a.kind for a in run.approvals] == ["doubt"]
    assert log.count("call 2") == 0

    run.resume([("answer", "happened")])
    assert run.status == "finished"
    assert distinct_acts(log) == 1


def test_an_async_effect_may_have_a_plain_or_an_async_look_up(drive: Driver, log: Log) -> None:
    async def lookup(call: EffectCall) -> Found:
        return Happened("found")

    @effect("pay", in_doubt="reconcile", lookup=lookup)
    async def pay(call: EffectCall) -> str:
        log("act")
        raise ConnectionResetError("after the act")

    @effect("ship", in_doubt="reconcile", lookup=lambda call: Happened("found too"))
    async def ship(call: EffectCall) -> str:
        raise ConnectionResetError("after the act")

    async def node(state: State) -> State:
        return {"seen": [await pay(), await ship()]}

    assert drive(chain(node), {}).output["seen"] == ["found", "found too"]
    assert log.lines == ["act"]


# -- ask -------------------------------------------------------------------------------------------


def test_by_default_a_person_is_asked_and_happened_gives_the_agent_the_result(
    drive: Driver, log: Log
) -> None:
    run = in_doubt(drive, log, "ask-happened")
    assert run.status == "waiting"
    (question,) = run.approvals
    assert question.kind == "doubt"
    (act,) = run.effects
    assert act.key in question.prompt

    with using(run.installation):
        resolve_effect(act.key, "happened", ref="re_1", by="anna", result="receipt from the statement")
    run.resume()

    assert run.output["seen"] == ["receipt from the statement"]
    assert log.count("call 2") == 0
    assert [(a.status, a.decided_by) for a in run.approvals] == [("approved", "anna")]


def test_did_not_happen_is_refused_before_the_horizon_and_calls_again_after_it(
    drive: Driver, log: Log
) -> None:
    run = in_doubt(drive, log, "ask-did-not", acts_first=False)
    key = run.effects[0].key

    with using(run.installation), pytest.raises(NotResolvable, match="may still be under way"):
        resolve_effect(key, "did_not_happen", by="anna")
    assert run.status == "waiting"
    assert [a.status for a in run.approvals] == ["open"]

    run.pass_time("2m").resume([("answer", "did_not_happen")])

    assert run.output["seen"] == ["receipt 2"]
    assert distinct_acts(log) == 1


def test_skip_makes_no_call_and_the_agent_sees_who_and_why(drive: Driver, log: Log) -> None:
    run = in_doubt(drive, log, "ask-skip")

    run.pass_time("2m").resume([{"verb": "answer", "value": "skip", "by": "anna", "note": "customer left"}])

    assert run.output["seen"] == ["skipped by anna: customer left"]
    assert log.count("call 2") == 0
    assert [a.status for a in run.effects] == ["failed"]


def test_an_answer_to_a_doubt_that_is_none_of_the_three_is_refused(drive: Driver, log: Log) -> None:
    from celegraph.errors import DecisionRefused

    run = in_doubt(drive, log, "ask-what")

    with pytest.raises(DecisionRefused, match="happened, did_not_happen, skip"):
        run.resume(["approve"])
    assert run.status == "waiting"


# -- the stop rests on no exception ----------------------------------------------------------------


def test_unwind_swallowed_by_except_exception_leads_to_no_second_call(drive: Driver, log: Log) -> None:
    @effect("pay")
    def pay(call: EffectCall) -> None:
        log("act")
        raise ConnectionResetError("after the act")

    def node(state: State) -> State:
        for _ in range(3):
            try:
                pay()
            except Exception:
                log("swallowed")
        return {"seen": ["went on"]}

    run = drive(chain(node), {})

    assert run.status == "waiting"
    assert log.lines == ["act"]


def test_even_a_node_that_swallows_everything_cannot_call_again_or_go_on(drive: Driver, log: Log) -> None:
    @effect("pay")
    def pay(call: EffectCall) -> None:
        log("act")
        raise ConnectionResetError("after the act")

    def node(state: State) -> State:
        for _ in range(3):
            try:
                pay.slot("one")()
            except BaseException as error:
                log(type(error).__name__)
        return {"seen": ["went on"]}

    def after(state: State) -> None:
        log("after")

    run = drive(chain(node, after), {})

    assert run.status == "waiting"
    assert log.lines == ["act", "Unwind", "AttemptOver", "AttemptOver"]


def test_a_tool_nodes_error_handling_leads_to_no_second_call(drive: Driver, log: Log) -> None:
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    @tool
    @effect("refund")
    def refund(call: EffectCall, order: str) -> str:
        """Refund an order."""
        log(f"act {order}")
        raise ConnectionResetError("after the act")

    def model(state: MessagesState) -> dict[str, Any]:
        log("model")
        call = {"name": "refund", "args": {"order": "o-1"}, "id": f"call_{log.count('model')}"}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode([refund], handle_tool_errors=True))
    graph.add_edge(START, "model")
    graph.add_edge("model", "tools")
    graph.add_edge("tools", "model")

    run = drive(graph, {"messages": []})

    assert run.status == "waiting"
    assert log.lines == ["model", "act o-1"]
    assert [a.kind for a in run.approvals] == ["doubt"]


def test_a_doubt_answered_before_its_question_stands_needs_no_person(
    drive: Driver, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    process_dies(lambda: drive(dying_payer(log), {}, run_id="answered-early"))

    async def answered_first(attempt: Attempt, outcome: Outcome, mark: str | None) -> Settled | None:
        if isinstance(outcome, Waiting):
            key = outcome.asks[0].idempotency_key
            await asyncio.to_thread(celegraph.confirm_effect, key, result="by webhook")
        return await settle(attempt, outcome, mark)

    monkeypatch.setattr(advance, "settle", answered_first)
    run = taken_over(drive(dying_payer(log), {}, run_id="answered-early"))

    assert run.output["seen"] == ["by webhook"]
    assert log.count("call 2") == 0
    assert [(a.kind, a.status, a.decided_by) for a in run.approvals] == [("doubt", "approved", None)]


def test_the_sweep_closes_a_question_whose_answer_came_first_and_wakes_its_run(
    lonely_drive: Driver, log: Log
) -> None:
    run = in_doubt(lonely_drive, log, "answered-unseen")
    assert run.status == "waiting"
    with connection(run) as conn:  # as if the process had died between the settle and its second look
        conn.execute("UPDATE effects SET status = 'sent', result = '\"late reply\"'")

    sweep(run)
    assert run.status == "ready"
    run.resume()

    assert run.output["seen"] == ["late reply"]


def test_an_answer_about_an_earlier_call_does_not_settle_a_later_one(drive: Driver, log: Log) -> None:
    @effect("transfer")
    def transfer(call: EffectCall) -> str:
        log("act")
        raise TimeoutError("no answer")

    run = drive(chain(lambda state: transfer() and None), {}, settings={"effect_timeout": "1s"})
    (question,) = run.approvals
    with connection(run) as conn:
        # As if a look-up had since allowed another call, which is in doubt now.
        conn.execute("UPDATE effects SET attempts = 2 WHERE run_id = %s", (run.run_id,))

        with (
            using(run.installation),
            pytest.raises(NotResolvable, match="number 1 was asked about"),
        ):
            decide(question.approval_id, "answer", value="happened", by="ada", connection=conn)
