"""What the provider says later, or somewhere else: webhooks, late replies, and what they may change."""

from __future__ import annotations

from typing import Any

import pytest

from celegraph import EffectCall, confirm_effect, effect, fail_effect, resolve_effect
from celegraph.errors import EffectFailed, EffectNotFound, LedgerError, NotResolvable
from celegraph.ledger import effects
from celegraph.ledger.effect_row import NthCall, Sent
from celegraph.ledger.pool import ledger
from celegraph.tasks.installation import using
from celegraph.testing.driver import Driven, Driver
from tests.support.driving import connection, event, kinds, taken_over
from tests.support.dying import die, process_dies
from tests.support.log import Log
from tests.support.shapes import Graph, State, chain


def payer(log: Log, webhook: Any = None, *, dies: bool = False, fails: bool = False) -> Graph:
    """`webhook(key)` comes before the reply."""

    @effect("pay")
    def pay(call: EffectCall) -> str:
        log("act")
        if webhook is not None:
            webhook(call.key)
        if dies:
            die()
        if fails:
            raise ConnectionResetError("after the act")
        call.provider_ref = "re_1"
        return "receipt"

    def node(state: State) -> State:
        try:
            seen = pay()
        except EffectFailed as failed:
            seen = failed.problem
        log(f"node got {seen}")
        if log.count("node got receipt") == 1 and webhook is not None:
            raise ConnectionResetError("once more")
        return {"seen": [seen]}

    return chain(node)


def test_the_reply_after_a_webhook_gives_the_node_its_result_and_is_kept_for_re_runs(
    drive: Driver, log: Log
) -> None:
    run = drive(payer(log, lambda key: confirm_effect(key)), {})

    assert run.output["seen"] == ["receipt"]
    assert log.lines == ["act", "node got receipt", "node got receipt"]
    assert [(a.status, a.result, a.provider_ref) for a in run.effects] == [("confirmed", "receipt", "re_1")]


def test_a_result_that_the_webhook_brought_stands_for_the_first_pass_and_every_later_one(
    drive: Driver, log: Log
) -> None:
    run = drive(payer(log, lambda key: confirm_effect(key, provider_ref="re_0", result="theirs")), {})

    assert run.output["seen"] == ["theirs"]
    assert log.lines == ["act", "node got theirs"]
    assert [(a.status, a.result) for a in run.effects] == [("confirmed", "theirs")]


def test_a_call_that_ends_badly_after_its_webhook_is_neither_doubted_nor_repeated(
    drive: Driver, log: Log
) -> None:
    run = drive(payer(log, lambda key: confirm_effect(key, result="theirs"), fails=True), {})

    assert run.output["seen"] == ["theirs"]
    assert log.count("act") == 1
    assert run.approvals == []


def test_a_webhook_by_reference_finds_the_call_once_it_has_returned(lonely_drive: Driver, log: Log) -> None:
    run = lonely_drive(payer(log), {})

    with using(run.installation):
        with pytest.raises(EffectNotFound):
            confirm_effect(provider_ref="re_77")
        with pytest.raises(LedgerError, match="key or its provider_ref"):
            confirm_effect()
        confirmed = confirm_effect(provider_ref="re_1")
        again = confirm_effect(provider_ref="re_1", result="other")

    assert (confirmed.status, confirmed.value) == ("confirmed", "receipt")
    assert again.value == "receipt"


def test_a_no_of_the_provider_reaches_the_agent_and_is_not_called_again(drive: Driver, log: Log) -> None:
    process_dies(lambda: drive(payer(log, dies=True), {}, run_id="no"))
    run = taken_over(drive(payer(log), {}, run_id="no"))
    assert run.status == "waiting"

    with using(run.installation):
        fail_effect(run.effects[0].key, reason="the card is closed")
        fail_effect(run.effects[0].key, reason="said twice")
    run.resume()

    assert run.output["seen"] == ["the card is closed"]
    assert log.count("act") == 1
    assert [(a.kind, a.status) for a in run.approvals] == [("doubt", "rejected")]


def test_a_no_after_the_call_has_returned_is_refused_and_says_why(drive: Driver, log: Log) -> None:
    run = drive(payer(log), {})
    key = run.effects[0].key

    with using(run.installation):
        with pytest.raises(NotResolvable, match="it is sent: what has happened cannot be undone"):
            fail_effect(key, reason="a chargeback")
        with pytest.raises(NotResolvable, match="it is sent"):
            resolve_effect(key, "did_not_happen", by="anna")

    assert run.effects[0].status == "sent"


def test_a_yes_of_the_provider_is_believed_also_after_a_no(drive: Driver, log: Log) -> None:
    run = in_doubt(drive, log, "yes-after-no")
    key = run.effects[0].key

    with using(run.installation):
        fail_effect(key, reason="not found yet")
        confirm_effect(key, result="receipt after all")

    assert [(a.status, a.result, a.error) for a in run.effects] == [("confirmed", "receipt after all", None)]
    assert log.count("act") == 1


def in_doubt(drive: Driver, log: Log, run_id: str) -> Driven:
    """Waiting with the question whether the call of a dead process happened."""
    process_dies(lambda: drive(payer(log, dies=True), {}, run_id=run_id))
    return taken_over(drive(payer(log), {}, run_id=run_id))


def test_a_late_reply_answers_the_question_that_was_asked_meanwhile(drive: Driver, log: Log) -> None:
    run = in_doubt(drive, log, "late-reply")
    assert [a.status for a in run.approvals] == ["open"]

    with ledger(run.installation.config) as conn:
        effects.keep_sent(conn, NthCall(run.effects[0].key, 1, epoch=1), Sent("receipt", "re_1", "call"))
    run.resume()

    assert run.output["seen"] == ["receipt"]
    assert [(a.status, a.decided_by) for a in run.approvals] == [("approved", "call")]
    assert event(run, "effect sent")["late"] is True


def test_the_result_of_an_owner_that_was_fenced_while_it_called_is_kept(
    lonely_drive: Driver, log: Log
) -> None:
    @effect("pay", in_doubt="retry")
    def pay(call: EffectCall) -> str:
        log("act")
        if call.attempt == 1 and log.count("act") == 1:
            fence(call.run_id)
        return "receipt"

    def fence(run_id: str) -> None:
        with ledger(run.installation.config) as conn:
            conn.execute("UPDATE run_leases SET epoch = epoch + 1 WHERE run_id = %s", [run_id])
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name LIKE 'celegraph pen%'"
            )

    def wait(state: State) -> None:
        from langgraph.types import interrupt

        interrupt("go on?")

    def node(state: State) -> State:
        return {"seen": [pay()]}

    run = lonely_drive(chain(wait, node), {})
    run.resume(["approve"])

    with connection(run) as conn:
        (row,) = effects.effects_of(conn, run.run_id)
    assert (row.status, row.value, row.attempts) == ("sent", "receipt", 1)
    assert event(run, "effect sent")["late"] is True
    assert "effect in doubt" not in kinds(run)
